"""Warn when EMAWeightAveraging averages before update_starting_at_epoch."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, name_and_title
from lightning_patches.patches.callbacks.ema_from_epoch import is_early


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        before = self._latest_update_step
        original(self, trainer, *args, **kwargs)
        epoch = trainer.fit_loop.epoch_progress.current.completed  # a Trainer may have its own `current_epoch`
        if self._latest_update_step != before and is_early(self, epoch, namespace):
            notices.warn_once(
                "ema-from-epoch",
                f"EMAWeightAveraging(update_starting_at_epoch={self.update_starting_at_epoch}) averages from the "
                "first step on: Lightning 2.6 uses the argument for the ends of epochs only. Give "
                "update_starting_at_step, or set LIGHTNING_PATCHES=default,ema-from-epoch.",
            )

    return on_train_batch_end


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.6.0,<=2.6.6",),
    targets=(Target("pytorch.callbacks.weight_averaging:WeightAveraging.on_train_batch_end", _on_train_batch_end),),
    impact=Impact(
        "EMAWeightAveraging(update_starting_at_epoch=...) averages from the first step on, as if the argument "
        "were not set."
    ),
    after=("ema-from-epoch",),
    fixed_by=("ema-from-epoch",),
    note="This patch fixes nothing: it warns once. The opt-in patch ema-from-epoch fixes the bug.",
)
