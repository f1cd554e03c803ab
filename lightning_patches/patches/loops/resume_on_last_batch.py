"""A run that is resumed from a checkpoint on the last batch of an epoch ends that epoch."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.loops import _saved_batch

_EPOCH_LOOP = "pytorch.loops.training_epoch_loop:_TrainingEpochLoop"


def _reset_fit_loop(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def reset(self: Any) -> None:
        self.update_restart_stage()
        batch = self.epoch_loop.batch_progress
        is_last = batch.is_last_batch
        if self.restarted_mid_epoch and self.epoch_loop.restarted_on_train_batch_end:
            batch.is_last_batch = False  # otherwise the original counts the epoch as done
        try:
            original(self)
        finally:
            batch.is_last_batch = is_last

    return reset


def _reset_epoch_loop(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def reset(self: Any) -> None:
        if self.trainer.fit_loop.restarted_mid_epoch and self._num_ready_batches_reached():
            if self.restarted_on_train_batch_end:
                self.batch_progress.increment_completed()
                self._restart_stage = "restarted_on_last"  # otherwise the original begins the next epoch
                _saved_batch.finish(self)
                _saved_batch.pass_is_over(self)
            elif self.restarted_on_last and _saved_batch.is_stateful(self):
                _saved_batch.pass_is_over(self)
        original(self)

    return reset


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "a run that is resumed from the last batch of an epoch"),
    affected=(">=2.5.0,<=2.6.6",),
    targets=(
        Target("pytorch.loops.fit_loop:_FitLoop.reset", _reset_fit_loop),
        Target(f"{_EPOCH_LOOP}.reset", _reset_epoch_loop),
        Target(f"{_EPOCH_LOOP}.advance", _saved_batch.advance),
        Target(f"{_EPOCH_LOOP}.on_run_start", _saved_batch.on_run_start),
    ),
    impact=Impact(
        "If a checkpoint was saved on the last batch of an epoch, as ModelCheckpoint does if "
        "every_n_train_steps divides the length of the epoch, the resumed run skips that epoch's validation "
        "and on_train_epoch_end, and on_train_epoch_start of the next epoch. With a stateful data loader, the "
        "next epoch has no batches.",
        (
            "validation is skipped after resuming from a checkpoint of every_n_train_steps",
            "on_train_epoch_end is not called for the epoch that was resumed at its last batch",
            "epoch after resuming with a stateful dataloader is empty, without a batch",
            "stream without length: after resuming on the last batch the next pass counts as the same epoch",
        ),
    ),
    after=("resume-single-iteration",),
    opt_in="users who resume from checkpoints that were saved on the last batch of an epoch",
    signs=("ckpt_path every_n_train_steps",),
    note="Opt-in because programs end the epoch themselves, by the same counters. Runs that are resumed from "
    "another batch are unchanged. Means of values that were logged before the checkpoint are lost, "
    "because no checkpoint contains them. Without the patch, save at another batch than the last one of "
    "an epoch.",
)
