"""Warn when last.ckpt is not the newest checkpoint of a run."""

import os
import re
from typing import Any, Callable

from lightning_patches.patch import Impact, Target, Upstream
from lightning_patches.patches._warning import Notes, observe, steps_of, stored, warn, warning

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"

_missed = Notes()
"""By callback: the last step at which it has checked its monitor without saving last.ckpt."""


def _noting(on_train_epoch_end: bool) -> Callable[..., Any]:
    def build(original: Callable[..., None], namespace: str) -> Callable[..., None]:
        def after(_: None, __: None, self: Any, trainer: Any, *___: Any, **____: Any) -> None:
            if type(self).__module__ != original.__module__ or self.save_last is not True or self.monitor is None:
                return  # a subclass may save in its own way
            epoch, every, step = trainer.fit_loop.epoch_progress.current, self._every_n_epochs, steps_of(trainer)
            is_due = every >= 1 and (epoch.completed + 1) % every == 0 and step > self._last_global_step_saved
            is_training = trainer.state.fn == "fit" and not (trainer.sanity_checking or trainer.fast_dev_run)
            if is_due and is_training and self._should_save_on_train_epoch_end(trainer) == on_train_epoch_end:
                _missed.add(self, step)

        return observe(original, after=after)

    return build


def _on_train_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def after(_: None, __: None, self: Any, trainer: Any, *___: Any, **____: Any) -> None:
        if _missed.take(self, 0) > self._last_global_step_saved and self.last_model_path:
            warn(
                "last-checkpoint-old",
                f"{os.path.basename(str(self.last_model_path))} is of step {self._last_global_step_saved}, and the "
                f"run ended at step {steps_of(trainer)}: from 2.6.0 on, Lightning saves it only if the monitored "
                "metric improved. Set LIGHTNING_PATCHES=default,last-checkpoint-newest, or add "
                "ModelCheckpoint(save_top_k=0, save_last=True).",
            )

    return observe(original, after=after)


def _save_last(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def after(_: None, __: None, self: Any, *___: Any, **____: Any) -> None:
        path = stored(self, "last_model_path")
        if not path or not stored(self, "save_last"):
            return
        name, last = os.path.basename(str(path)), self.CHECKPOINT_NAME_LAST
        if re.fullmatch(rf"{re.escape(last)}-v\d+\.ckpt", name):
            warn(
                "last-checkpoint-version",
                f"The last checkpoint of this run is {name}. {last}.ckpt is of an earlier run, and stays as it is. "
                "Resume from the newest one with ckpt_path='last'.",
            )

    return observe(original, after=after)


PATCH = warning(
    Target(f"{_CALLBACK}._save_last_checkpoint", _save_last),
    Target(f"{_CALLBACK}.on_train_epoch_end", _noting(True), since="2.6.0"),
    Target(f"{_CALLBACK}.on_validation_end", _noting(False), since="2.6.0"),
    Target(f"{_CALLBACK}.on_train_end", _on_train_end, since="2.6.0"),
    added="0.3.0",
    affected=(">=2.0.0,<=2.6.6",),
    upstream=Upstream(issues=(20245, 19325)),
    impact=Impact(
        "last.ckpt is not the newest checkpoint: from 2.6.0 on it stays at the best epoch. In a directory with "
        "a last.ckpt of an earlier run, the newest checkpoint is last-v1.ckpt.",
        ("last-v1.ckpt appears after a resume, and last.ckpt is never written again",),
    ),
    after=("last-checkpoint-at-end", "last-checkpoint-link-to-itself", "warn-checkpoint-before-validation"),
    note="The opt-in patch last-checkpoint-newest fixes last.ckpt from 2.6.0 on.",
)
