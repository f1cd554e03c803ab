"""A resumed run runs the validation that was due when the checkpoint was saved."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.loops import _saved_batch

_EPOCH_LOOP = "pytorch.loops.training_epoch_loop:_TrainingEpochLoop"


def is_validation_left_out(loop: Any) -> bool:
    """True if a resumed epoch loop would skip the validation that follows the saved batch."""
    is_within = loop.trainer.fit_loop.restarted_mid_epoch and loop.restarted_on_train_batch_end
    return bool(is_within and not loop._num_ready_batches_reached() and _saved_batch.is_validation_due(loop))


def _reset(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def reset(self: Any) -> None:
        if is_validation_left_out(self):
            self.batch_progress.increment_completed()
            self._restart_stage = "restarted_on_last"  # on_advance_end counts the step
            _saved_batch.finish(self)
        original(self)

    return reset


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "a resumed run has one validation more"),
    affected=(">=2.5.0,<=2.6.6",),
    targets=(Target(f"{_EPOCH_LOOP}.reset", _reset), Target(f"{_EPOCH_LOOP}.advance", _saved_batch.advance)),
    impact=Impact(
        "If a validation follows the batch at which a checkpoint was saved, as with val_check_interval=100 and "
        "every_n_train_steps=100, the resumed run skips that validation.",
        (
            "validation that was due is never run after resuming with val_check_interval and every_n_train_steps",
            "validation is missing after resuming from a checkpoint of every_n_train_steps",
        ),
    ),
    opt_in="users who resume from checkpoints that were saved just before a validation within an epoch",
    signs=("ckpt_path val_check_interval every_n_train_steps",),
    after=("resume-on-last-batch",),
    note="Opt-in because programs work without that validation, and some users want training to continue "
    "immediately. With the patch, the resumed run equals the uninterrupted run.",
)
