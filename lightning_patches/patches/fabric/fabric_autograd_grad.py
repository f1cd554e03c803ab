"""torch.autograd.grad of a Fabric module's output works with bf16-mixed."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.engine.functions import stock_of
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _register_backward_hook(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    strategy = stock_of(original).__globals__.get("Strategy")

    def _register_backward_hook(self: Any, tensor: Any) -> Any:
        precision = self._strategy.precision
        if (
            type(precision).__name__ == "MixedPrecision"
            and type(precision) is upstream_module(namespace, "fabric.plugins.precision.amp").MixedPrecision
            and precision.scaler is None
            and type(self._strategy).backward is strategy.backward
        ):
            return tensor  # a backward without Fabric computes the same
        return original(self, tensor)

    return _register_backward_hook


PATCH = Patch(
    group="crash",
    affected=(">=2.3.0,<=2.6.6",),
    targets=(Target("fabric.wrappers:_FabricModule._register_backward_hook", _register_backward_hook),),
    upstream=Upstream(),
    impact=Impact(
        "With bf16-mixed, Fabric refuses `torch.autograd.grad` of a module's output, for example for a gradient "
        "penalty, and `loss.backward()`. Only 16-mixed, which scales the loss, needs `fabric.backward(loss)`.",
        ("requires you to call `fabric.backward(loss)` instead of `loss.backward()`",),
        error="RuntimeError: The current strategy and precision selection requires you to call `fabric.backward(loss)` "
        "instead of `loss.backward()`.",
    ),
    note="With 16-mixed, and with strategies that have a backward, such as DeepSpeed, the error stays. Without "
    "the patch, call `model.module` under `fabric.autocast()`.",
    added="0.3.0",
    after=("fabric-hook-once",),
)
