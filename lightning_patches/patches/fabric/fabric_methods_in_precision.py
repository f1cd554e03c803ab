"""On one device, steps and marked methods of a Fabric module compute in Fabric's precision."""

from typing import Any, Callable

from lightning_patches.engine.functions import stock_of
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.fabric._through_forward import is_wrapped, through_forward

_STEPS = frozenset(("training_step", "validation_step", "test_step", "predict_step"))


def _getattr_in_precision(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    plain = stock_of(original).__globals__.get("Precision")

    def __getattr__(self: Any, item: Any) -> Any:  # noqa: N807
        own = self.__dict__
        marked = own.get("_forward_methods") or own.get("_lightning_patches_forward_methods") or ()
        if (item in _STEPS or item in marked) and not is_wrapped(self) and hasattr(self._original_module, item):
            precision = own["_precision"] if "_precision" in own else own["_strategy"].precision
            if type(precision) is not plain:
                return through_forward(self, item)
        return original(self, item)

    return __getattr__


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "steps and marked methods compute in Fabric's precision"),
    affected=(">=2.0.2,<=2.6.6",),
    targets=(Target("fabric.wrappers:_FabricModule.__getattr__", _getattr_in_precision),),
    upstream=Upstream(),
    impact=Impact(
        "On one device, `training_step` and marked methods of a Fabric module run without Fabric's precision: with "
        "bf16-mixed they compute in float32, and with 64-true they fail. With DDP they get the precision.",
        (
            "training_step of a Fabric module computes in float32 with bf16-mixed on one GPU",
            "a method marked with mark_forward_method runs without autocast on a single device",
        ),
    ),
    opt_in="users who call training_step or marked methods of a Fabric module on one device",
    signs=("Fabric training_step", "mark_forward_method"),
    note="Opt-in because it changes the numbers of programs that end well. Without the patch, call `model(batch)`, or "
    "put the call under `fabric.autocast()`.",
    added="0.3.0",
    after=("fabric-attributes-reach-model", "fabric-submodule-sync"),
)
