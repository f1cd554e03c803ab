"""Warn when a checkpoint is ranked by the metric of the previous validation."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, name_and_title
from lightning_patches.patches.checkpoints.checkpoint_after_validation import is_to_wait


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        is_early = is_to_wait(self, trainer)
        original(self, trainer, *args, **kwargs)
        if is_early and self._last_global_step_saved == trainer.global_step:
            notices.warn_once(
                "checkpoint-before-validation",
                f"ModelCheckpoint saved step {trainer.global_step} just before the validation of that step, and "
                f"ranks it by the previous value of {self.monitor!r}. Set LIGHTNING_PATCHES=default,20185, or save "
                "and validate at different steps.",
            )

    return on_train_batch_end


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.callbacks.model_checkpoint:ModelCheckpoint.on_train_batch_end",
            _on_train_batch_end,
            stock=("self",),
        ),
    ),
    impact=Impact(
        "ModelCheckpoint with a monitor and every_n_train_steps saves just before a validation: the file is "
        "ranked by the metric of the previous validation, and the best checkpoint is the wrong one."
    ),
    after=("checkpoint-after-validation", "checkpoint-after-own-validation"),
    fixed_by=("checkpoint-after-validation", "checkpoint-after-own-validation"),
    note="This patch fixes nothing: it warns once. The opt-in patches checkpoint-after-validation (below "
    "2.5.5) and checkpoint-after-own-validation (from 2.5.5 on) fix the bug.",
)
