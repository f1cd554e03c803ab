"""Warn when EarlyStopping, ModelCheckpoint or SWA starts a run with another run's state."""

import weakref
from typing import Any, Callable

from lightning_patches.patch import Impact, Target
from lightning_patches.patches._warning import Notes, observe, stored, warn, warning

_trainers = Notes()
"""By callback: a weak reference to the Trainer of its last fit."""


def _observing(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=_before)


def _before(self: Any, trainer: Any, *_: Any, **__: Any) -> None:
    last = _trainers.find(self)
    if last is not None and last() is trainer:
        return
    _trainers.add(self, weakref.ref(trainer))
    is_used = any(stored(self, name) for name in ("best_model_path", "wait_count", "stopped_epoch", "_initialized"))
    if last is not None and is_used and trainer._checkpoint_connector._ckpt_path is None:
        kind = type(self).__name__
        warn(
            f"callbacks-reused {kind}",
            f"This {kind} was in another Trainer, and begins this run with that run's state, such as its best "
            "score or its averaged weights. Create a new one for each run. "
            "LIGHTNING_PATCHES=default,-warn-callbacks-reused switches this warning off.",
        )


PATCH = warning(
    Target("pytorch.callbacks.early_stopping:EarlyStopping._run_early_stopping_check", _observing),
    Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint.on_train_start", _observing),
    Target("pytorch.callbacks.stochastic_weight_avg:StochasticWeightAveraging.on_fit_start", _observing),
    added="0.3.0",
    affected=(">=2.0.0,<=2.6.6",),
    impact=Impact(
        "EarlyStopping, ModelCheckpoint and StochasticWeightAveraging objects that are passed to a second Trainer "
        "keep the best score, the counters and the average of the first run: the second run may stop at once, and "
        "best_model_path is a model of the first run.",
        ("second fold of a cross validation stops after one epoch", "best_model_path is that of the previous fold"),
    ),
    after=("early-stopping-before-minimum", "resumed-metrics", "swa-infinite-epochs"),
    when=" for each class, since a program may reuse the callbacks on purpose",
    note="If the program resets a callback before the next run, there is no warning.",
)
