"""Optimizers that call the closure under no_grad can train the model."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _closure(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def closure(self: Any, *args: Any, **kwargs: Any) -> Any:
        import torch

        # A custom backward() may not need gradients, for example with an optimizer that uses only losses.
        loop = getattr(getattr(self._step_fn, "func", None), "__self__", None)
        strategy = getattr(getattr(getattr(loop, "trainer", None), "_accelerator_connector", None), "strategy", None)
        model = getattr(strategy, "_lightning_module", None)  # a Trainer subclass may override properties
        lightnings = upstream_module(namespace, "pytorch.core.module").LightningModule
        if isinstance(model, lightnings) and type(model).backward is not lightnings.backward:
            return original(self, *args, **kwargs)
        with torch.enable_grad():
            return original(self, *args, **kwargs)

    return closure


PATCH = Patch(
    group="crash",
    affected=(">=1.8.0,<2.0.7",),
    targets=(
        Target("pytorch.loops.optimization.automatic:Closure.closure", _closure, since="2.0.0"),
        Target("pytorch.loops.optimization.optimizer_loop:Closure.closure", _closure, before="2.0.0"),
    ),
    upstream=Upstream(pull_requests=(18268,), fixed_in="2.0.7"),
    impact=Impact(
        "If an optimizer's step() runs under torch.no_grad() and does not enable gradients for its closure, "
        "training fails at its first step.",
        ("element 0 of tensors does not require grad and does not have a grad_fn",),
        error="RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
        frames=("/plugins/precision/precision",),
    ),
)
