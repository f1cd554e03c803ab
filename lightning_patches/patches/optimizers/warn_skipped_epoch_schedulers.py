"""Warn when no scheduler was stepped for an epoch that on_train_batch_start ended."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import Notes, is_manual, observe, warn, warning
from lightning_patches.patches.optimizers import skipped_epoch_schedulers

_FIT_LOOP = "pytorch.loops.fit_loop:_FitLoop"

_counts = Notes()
"""By fit loop: the number of steps of each scheduler with interval "epoch" when the epoch began."""


def _steps(loop: Any) -> list[Any]:
    configs = loop.trainer._accelerator_connector.strategy.lr_scheduler_configs
    return [inspect.getattr_static(one.scheduler, "last_epoch", None) for one in configs if one.interval == "epoch"]


def _advance(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=lambda self: _counts.add(self, _steps(self)))


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=_was_skipped, after=_after)


def _was_skipped(self: Any) -> bool:
    progress = self.epoch_loop.batch_progress.current
    return bool(progress.processed > progress.started)  # the last batch was never started


def _after(was_skipped: bool, _: None, self: Any) -> None:
    before = _counts.take(self, ())
    is_left_out = was_skipped and before and _steps(self) == before
    if is_left_out and not is_manual(self.trainer._accelerator_connector.strategy._lightning_module):
        warn(
            "skipped-epoch-schedulers",
            "on_train_batch_start ended the epoch by returning -1, and no learning rate scheduler was stepped: "
            "Lightning below 2.6.0 omits it then. Step them in on_train_epoch_end, or set "
            "LIGHTNING_PATCHES=default,skipped-epoch-schedulers.",
        )


PATCH = warning(
    Target(f"{_FIT_LOOP}.advance", _advance),
    Target(f"{_FIT_LOOP}.on_advance_end", _on_advance_end),
    fixes=(skipped_epoch_schedulers,),
    added="0.3.0",
    affected=(">=2.0.0,<2.6.0",),
    witnesses=("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.advance",),
    after=("warn-scheduler-never-steps",),
    when=", after the first such epoch, unless the program steps a scheduler itself",
)
