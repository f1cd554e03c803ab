"""A checkpoint due just before a validation within an epoch uses that validation's metric."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints.checkpoint_after_validation import is_to_wait


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        if is_to_wait(self, trainer):
            self._defer_save_until_validation = True
        else:
            original(self, trainer, *args, **kwargs)

    return on_train_batch_end


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "which checkpoints are saved, when, and what they contain"),
    affected=(">=2.5.5,<=2.6.6",),
    targets=(
        Target(
            "pytorch.callbacks.model_checkpoint:ModelCheckpoint.on_train_batch_end",
            _on_train_batch_end,
            stock=("self",),
        ),
    ),
    upstream=Upstream(issues=(20185,)),
    impact=Impact(
        "ModelCheckpoint with a monitor and every_n_train_steps saves just before a validation that "
        "val_check_interval schedules: the file is ranked by the metric of the previous validation, and the "
        "best checkpoint is the wrong one. 2.5.5 fixes this only for the last batch of an epoch.",
        ("best checkpoint has the metric of the validation before it with val_check_interval",),
    ),
    opt_in="users who set every_n_train_steps and val_check_interval, and choose the best checkpoint by a "
    "validation metric",
    signs=("every_n_train_steps monitor val_check_interval",),
    after=("manual-optimization-time-interval",),
    note="The patch is equivalent to a subclass that saves in on_validation_end. On releases below 2.5.5, use "
    "the opt-in patch checkpoint-after-validation instead. Opt-in because the file then has the state at "
    "the end of the validation, and is not written if the validation fails. Subclasses are unchanged.",
)
