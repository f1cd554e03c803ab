"""Warn when a resumed run skips the validation that was due when the checkpoint was saved."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, name_and_title
from lightning_patches.patches.loops.validation_due_on_resume import is_validation_left_out


def _reset(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def reset(self: Any) -> None:
        left_out = is_validation_left_out(self)
        original(self)
        # The opt-in patch changes the restart stage.
        if left_out and self.restarted_on_train_batch_end:
            notices.warn_once(
                "validation-due-on-resume",
                "This run was resumed from a checkpoint of a batch that a validation follows, and Lightning leaves "
                "that validation out. To run it, set LIGHTNING_PATCHES=default,validation-due-on-resume.",
            )

    return reset


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.5.0,<=2.6.6",),
    targets=(Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.reset", _reset),),
    impact=Impact(
        "If a validation follows the batch at which a checkpoint was saved, as with val_check_interval=100 and "
        "every_n_train_steps=100, the resumed run skips that validation."
    ),
    after=("validation-due-on-resume", "resume-on-last-batch"),
    note="This patch fixes nothing: it warns once. The opt-in patch validation-due-on-resume fixes the bug.",
)
