"""Warn when ModelCheckpoint ignores train_time_interval."""

from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import is_applied, is_manual, observe, stored, warn, warning
from lightning_patches.patches.checkpoints import manual_optimization_time_interval


def _on_train_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def before(self: Any, trainer: Any, pl_module: Any) -> None:
        has_interval = stored(self, "_train_time_interval") is not None
        if has_interval and is_manual(pl_module) and not is_applied("manual-optimization-time-interval", namespace):
            warn(
                "time-interval-ignored",
                "No checkpoint is saved at train_time_interval: with manual optimization, this release of Lightning "
                "ignores it. To save checkpoints, set LIGHTNING_PATCHES=default,manual-optimization-time-interval, or "
                "use ModelCheckpoint(every_n_train_steps=...).",
            )

    return observe(original, before=before)


PATCH = warning(
    Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint.on_train_start", _on_train_start),
    fixes=(manual_optimization_time_interval,),
    after=("warn-callbacks-reused",),
    added="0.2.0",
    when=", when training starts",
)
