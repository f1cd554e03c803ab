"""A checkpoint due at an epoch's last batch is saved there if no validation follows."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.checkpoints.checkpoint_after_validation import WAITS


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        waited = vars(self).get(WAITS, False)
        setattr(self, WAITS, False)
        try:
            original(self, trainer, *args, **kwargs)
        finally:
            waits = getattr(self, WAITS)
            setattr(self, WAITS, waits or waited)
        if (
            waits
            and self.monitor in trainer._logger_connector.metrics["callback"]  # logged by this training step
            and not trainer.fit_loop.epoch_loop._should_check_val_fx(trainer.fit_loop._data_fetcher)
            and not self._should_skip_saving_checkpoint(trainer)
        ):
            setattr(self, WAITS, False)
            candidates = self._monitor_candidates(trainer)
            self._save_topk_checkpoint(trainer, candidates)
            self._save_last_checkpoint(trainer, candidates)

    return on_train_batch_end


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "checkpoints due at an epoch's last batch are saved at their step"),
    affected=(">=2.5.5,<=2.6.6",),
    targets=(
        Target(
            "pytorch.callbacks.model_checkpoint:ModelCheckpoint.on_train_batch_end",
            _on_train_batch_end,
            stock=("self", "trainer.fit_loop.epoch_loop._should_check_val_fx"),
        ),
    ),
    impact=Impact(
        "With every_n_train_steps, val_check_interval and a monitor that training_step logs, a checkpoint that is due "
        "at the last batch of an epoch waits for a validation, even if none follows: it is written some steps later, "
        "or never.",
        (
            "ModelCheckpoint(every_n_train_steps) does not save at the last step of an epoch",
            "the last checkpoint of every_n_train_steps is missing with val_check_interval",
        ),
        would_tell="that the monitor is logged in training_step, and val_check_interval does not divide the number of "
        "batches",
    ),
    after=("manual-optimization-time-interval", "checkpoint-after-own-validation"),
    note="The fix of 2.5.5 for stale metrics causes this bug. A checkpoint still waits if a validation follows its "
    "batch. With a monitor that a validation computes, it waits for the next one, whose metric belongs to the step at "
    "which it is then saved. Subclasses are unchanged.",
)
