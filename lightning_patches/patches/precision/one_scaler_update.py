"""With several optimizers, 16-mixed updates its scaler after the steps of all."""

from functools import partial
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_READS = ("scale", "state_dict", "load_state_dict", "get_scale")


def _optimizer_step(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def optimizer_step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        scaler = self.scaler
        if scaler is None:
            return original(self, optimizer, *args, **kwargs)
        own = vars(scaler)
        if id(optimizer) in own.get("_stepped", ()):
            _update(scaler)
        # Other optimizers have gradients with the same scale: update it when it is used again.
        own["update"] = lambda *_: own.setdefault("_stepped", set()).add(id(optimizer))
        try:
            return original(self, optimizer, *args, **kwargs)
        finally:
            del own["update"]
            if "_stepped" in own:
                own.update((name, partial(_updated, scaler, name)) for name in _READS)

    return optimizer_step


def _updated(scaler: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    _update(scaler)
    return getattr(scaler, name)(*args, **kwargs)


def _update(scaler: Any) -> None:
    for name in (*_READS, "_stepped"):
        vars(scaler).pop(name, None)
    type(scaler).update(scaler)


_PYTORCH = "pytorch.plugins.precision.amp"

PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "steps after an overflow in the gradients of another optimizer"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("fabric.plugins.precision.amp:MixedPrecision.optimizer_step", _optimizer_step),
        Target(f"{_PYTORCH}:MixedPrecisionPlugin.optimizer_step", _optimizer_step, before="2.1.1"),
        Target(f"{_PYTORCH}:MixedPrecision.optimizer_step", _optimizer_step, since="2.1.1"),
    ),
    upstream=Upstream(),
    impact=Impact(
        "With 16-mixed and several optimizers, Fabric and manual optimization update the scaler after each optimizer's "
        "step. If that changes the scale, the next optimizer's gradients are divided by another scale than they were "
        "multiplied by: after an overflow its step is twice too large.",
        (
            "after an overflow with 16-mixed and two optimizers the step of the second is twice too large",
            "GradScaler is updated between two optimizer steps in manual optimization",
        ),
    ),
    opt_in="users who train several optimizers with 16-mixed and call all backwards before the steps",
    note="Opt-in because it changes the numbers of programs that end well. Without the patch, run the backward of the "
    "second optimizer after the first one's step, or use bf16-mixed.",
    added="0.3.0",
    after=("amp-skipped-batch", "swa-stale-gradients"),
)
