"""Warn when self.clip_gradients clips gradients that are still scaled."""

from typing import Any, Callable

from lightning_patches.engine.functions import names_in
from lightning_patches.patch import Target
from lightning_patches.patches._warning import observe, stored, warn, warning
from lightning_patches.patches.precision import clipping_of_scaled_gradients
from lightning_patches.patches.precision.clipping_of_scaled_gradients import are_scaled

_AMP = "pytorch.plugins.precision.amp"


def _clip_gradients(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=_before)


_NAME = "clipping-of-scaled-gradients"


def _before(self: Any, optimizer: Any, clip_val: Any = 0.0, *_: Any, **__: Any) -> None:
    scaler = stored(self, "scaler")
    if clip_val > 0 and are_scaled(scaler, optimizer) and _NAME not in names_in(type(self).clip_gradients):
        warn(
            _NAME,
            f"The gradients that self.clip_gradients clips to {clip_val} are still scaled by "
            f"{float(stored(scaler, '_scale')):g}, so the steps are too small by that factor. Set "
            f"LIGHTNING_PATCHES=default,{_NAME}, or unscale, step and update through the scaler yourself. Ignore "
            "this warning if your script compensates for the scale.",
        )


PATCH = warning(
    Target(f"{_AMP}:MixedPrecisionPlugin.clip_gradients", _clip_gradients, before="2.1.1"),
    Target(f"{_AMP}:MixedPrecision.clip_gradients", _clip_gradients, since="2.1.1"),
    fixes=(clipping_of_scaled_gradients,),
    added="0.2.0",
)
