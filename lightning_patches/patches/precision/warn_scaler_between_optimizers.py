"""Warn when 16-mixed has changed its scale between the steps of two optimizers."""

from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import Notes, is_applied, observe, stored, warn, warning
from lightning_patches.patches.precision import one_scaler_update

_stepped = Notes()
"""By scaler, the optimizer of the last step. Removed by a backward, which uses the new scale."""


def _optimizer_step(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def before(self: Any, optimizer: Any, *_: Any, **__: Any) -> None:
        scaler = stored(self, "scaler")
        is_next = _stepped.find(scaler, id(optimizer)) != id(optimizer)
        # The tracker counts steps since the scale was changed.
        if is_next and int(stored(scaler, "_growth_tracker")) == 0 and not is_applied("one-scaler-update", namespace):
            warn(
                "scaler-between-optimizers",
                "16-mixed changed its scale after the step of another optimizer, since gradients overflowed or after a "
                f"long time without. The gradients of this {type(optimizer).__name__} have the old scale, so its step "
                "is twice too large, or half as large. Run its backward after the other step, use "
                "bf16-mixed, or set LIGHTNING_PATCHES=default,one-scaler-update.",
            )

    def after(seen: None, result: Any, self: Any, optimizer: Any, *_: Any, **__: Any) -> None:
        _stepped.add(stored(self, "scaler"), id(optimizer))

    return observe(original, before, after)


def _backward(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    return observe(original, lambda self, *_, **__: _stepped.take(stored(self, "scaler")))


_PYTORCH = "pytorch.plugins.precision.amp"

PATCH = warning(
    Target("fabric.plugins.precision.amp:MixedPrecision.optimizer_step", _optimizer_step),
    Target("fabric.plugins.precision.amp:MixedPrecision.backward", _backward),
    Target(f"{_PYTORCH}:MixedPrecisionPlugin.optimizer_step", _optimizer_step, before="2.1.1"),
    Target(f"{_PYTORCH}:MixedPrecisionPlugin.pre_backward", _backward, before="2.1.1"),
    Target(f"{_PYTORCH}:MixedPrecision.optimizer_step", _optimizer_step, since="2.1.1"),
    Target(f"{_PYTORCH}:MixedPrecision.pre_backward", _backward, since="2.1.1"),
    fixes=(one_scaler_update,),
    after=("amp-skipped-batch", "swa-stale-gradients"),
    added="0.3.0",
)
