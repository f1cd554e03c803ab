"""Warn when self.clip_gradients clips gradients that are still scaled."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.engine.functions import names_in
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title
from lightning_patches.patches.precision.clipping_of_scaled_gradients import are_scaled

_AMP = "pytorch.plugins.precision.amp"
_FIX = "clipping-of-scaled-gradients"


def _clip_gradients(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def clip_gradients(self: Any, optimizer: Any, clip_val: Any = 0.0, *args: Any, **kwargs: Any) -> None:
        is_known = notices.was_said(_FIX) or _FIX in names_in(type(self).clip_gradients)
        if not is_known and clip_val > 0 and are_scaled(self.scaler, optimizer):
            notices.warn_once(  # only once, since reading the scale waits for the GPU
                _FIX,
                f"The gradients that self.clip_gradients clips to {clip_val} are still scaled by "
                f"{self.scaler.get_scale():g}, so the steps are too small by that factor. Set "
                f"LIGHTNING_PATCHES=default,{_FIX}, or unscale, step and update through the scaler yourself. Ignore "
                "this warning if your script compensates for the scale.",
            )
        original(self, optimizer, clip_val, *args, **kwargs)

    return clip_gradients


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.2.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_AMP}:MixedPrecisionPlugin.clip_gradients", _clip_gradients, before="2.1.1"),
        Target(f"{_AMP}:MixedPrecision.clip_gradients", _clip_gradients, since="2.1.1"),
    ),
    upstream=Upstream(issues=(18089,)),
    impact=Impact(
        "In manual optimization with precision='16-mixed', self.clip_gradients clips gradients that are still scaled, "
        "initially by 65536: the steps are too small by that factor, and training makes no progress.",
        ("gradients are clipped while they are scaled", "training with 16-mixed and clip_gradients makes no progress"),
    ),
    after=("fused-optimizer-clipping",),
    note="This patch fixes nothing: it warns once. The opt-in patch clipping-of-scaled-gradients fixes the bug.",
    fixed_by=("clipping-of-scaled-gradients",),
)
