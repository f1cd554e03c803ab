"""training_step() of a model that was set up with Fabric goes through the strategy."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.fabric._through_forward import is_wrapped, through_forward

_STEPS = frozenset(("training_step", "validation_step", "test_step", "predict_step"))


def _getattr_steps(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __getattr__(self: Any, item: Any) -> Any:  # noqa: N807
        if item in _STEPS and is_wrapped(self) and hasattr(self._original_module, item):
            return through_forward(self, item)
        return original(self, item)

    return __getattr__


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "gradients are averaged over the ranks, and steps compute in Fabric's precision"),
    affected=(">=1.9.0,<2.0.2",),
    targets=(Target("fabric.wrappers:_FabricModule.__getattr__", _getattr_steps),),
    upstream=Upstream(
        pull_requests=(17424, 17439),
        commit="0ee71d6a7a",
        fixed_in="2.0.2",
        tests=("tests/tests_fabric/test_wrappers.py::test_step_method_redirection",),
    ),
    impact=Impact(
        "If a program calls training_step() of a LightningModule after fabric.setup(), the call bypasses DDP "
        "or FSDP and the precision plugin: the ranks train different models, without a warning.",
        ("gradients differ between ranks when training_step is called with Fabric",),
    ),
)
