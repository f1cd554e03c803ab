"""Warn when last.ckpt is not the newest checkpoint of a run."""

import os
import re
from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title
from lightning_patches.patches.checkpoints.last_checkpoint_newest import is_due

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"
_MISSED = "_last_checkpoint_missed"


def _noting(on_train_epoch_end: bool) -> Callable[..., Any]:
    def build(original: Callable[..., None], namespace: str) -> Callable[..., None]:
        def hook(self: Any, trainer: Any, pl_module: Any) -> None:
            due = is_due(self, trainer, on_train_epoch_end)
            original(self, trainer, pl_module)
            if due:
                vars(self)[_MISSED] = trainer.global_step

        return hook

    return build


def _on_train_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_end(self: Any, trainer: Any, pl_module: Any) -> None:
        original(self, trainer, pl_module)
        if self.last_model_path and vars(self).pop(_MISSED, 0) > self._last_global_step_saved:
            notices.warn_once(
                "last-checkpoint-old",
                f"{os.path.basename(str(self.last_model_path))} is of step {self._last_global_step_saved}, and the "
                f"run ended at step {trainer.global_step}: from 2.6.0 on, Lightning saves it only if the monitored "
                "metric improved. Set LIGHTNING_PATCHES=default,last-checkpoint-newest, or add "
                "ModelCheckpoint(save_top_k=0, save_last=True).",
            )

    return on_train_end


def _save_last(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save_last_checkpoint(self: Any, trainer: Any, monitor_candidates: Any) -> None:
        original(self, trainer, monitor_candidates)
        name = os.path.basename(str(self.last_model_path))
        if self.save_last and re.fullmatch(rf"{re.escape(self.CHECKPOINT_NAME_LAST)}-v\d+\.ckpt", name):
            notices.warn_once(
                "last-checkpoint-version",
                f"The last checkpoint of this run is {name}. {self.CHECKPOINT_NAME_LAST}.ckpt is of an earlier run, "
                "and stays as it is. Resume from the newest one with ckpt_path='last'.",
            )

    return save_last_checkpoint


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_CALLBACK}._save_last_checkpoint", _save_last),
        Target(f"{_CALLBACK}.on_train_epoch_end", _noting(True), since="2.6.0", stock=("self",)),
        Target(f"{_CALLBACK}.on_validation_end", _noting(False), since="2.6.0", stock=("self",)),
        Target(f"{_CALLBACK}.on_train_end", _on_train_end, since="2.6.0"),
    ),
    upstream=Upstream(issues=(20245, 19325)),
    impact=Impact(
        "last.ckpt is not the newest checkpoint: from 2.6.0 on it stays at the best epoch. In a directory with "
        "a last.ckpt of an earlier run, the newest checkpoint is last-v1.ckpt.",
        ("last-v1.ckpt appears after a resume, and last.ckpt is never written again",),
    ),
    after=(
        "checkpoint-after-validation",
        "last-checkpoint-at-end",
        "last-checkpoint-link-to-itself",
        "last-checkpoint-newest",
    ),
    note="This patch fixes nothing: it warns once. The opt-in patch last-checkpoint-newest fixes last.ckpt "
    "from 2.6.0 on.",
)
