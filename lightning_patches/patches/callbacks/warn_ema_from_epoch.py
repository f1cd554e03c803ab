"""Warn when EMAWeightAveraging averages before update_starting_at_epoch."""

from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import observe, stored, warn, warning
from lightning_patches.patches.callbacks import ema_from_epoch
from lightning_patches.patches.callbacks.ema_from_epoch import is_early

_STEP = "_latest_update_step"


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def after(last: int, _: None, self: Any, trainer: Any, *__: Any, **___: Any) -> None:
        start = stored(self, "update_starting_at_epoch")
        if start is None or last == stored(self, _STEP):
            return
        epoch = trainer.fit_loop.epoch_progress.current.completed  # a Trainer may have its own `current_epoch`
        if epoch < start and is_early(self, epoch, namespace):
            warn(
                "ema-from-epoch",
                f"EMAWeightAveraging(update_starting_at_epoch={start}) averages from the first step on: Lightning 2.6 "
                "uses the argument for the ends of epochs only. Give update_starting_at_step, or set "
                "LIGHTNING_PATCHES=default,ema-from-epoch.",
            )

    return observe(original, before=lambda self, *_, **__: stored(self, _STEP), after=after)


PATCH = warning(
    Target("pytorch.callbacks.weight_averaging:WeightAveraging.on_train_batch_end", _on_train_batch_end),
    fixes=(ema_from_epoch,),
    added="0.3.0",
)
