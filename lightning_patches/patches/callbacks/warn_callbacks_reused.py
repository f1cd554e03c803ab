"""Warn when EarlyStopping or ModelCheckpoint starts a new run with the state of another run."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, name_and_title

_TRAINER = "_trainer_of_last_fit"


def _warning(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def hook(self: Any, trainer: Any, *args: Any) -> None:
        before = vars(self).get(_TRAINER)
        vars(self)[_TRAINER] = id(trainer)
        if before not in (None, id(trainer)) and trainer.ckpt_path is None and _has_state(self):
            kind = type(self).__name__
            notices.warn_once(
                f"callbacks-reused {kind}",
                f"This {kind} was in another Trainer, and begins this run with that run's state, such as its best "
                "score. Create a new one for each run.",
            )
        original(self, trainer, *args)

    return hook


def _has_state(callback: Any) -> bool:
    return bool(
        getattr(callback, "best_model_path", "")
        or getattr(callback, "wait_count", 0)
        or getattr(callback, "stopped_epoch", 0)
    )


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.callbacks.early_stopping:EarlyStopping._run_early_stopping_check", _warning),
        Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint.on_train_start", _warning),
    ),
    impact=Impact(
        "EarlyStopping and ModelCheckpoint objects that are passed to a second Trainer keep the best score and "
        "the counters of the first run: the second run may stop at once, and best_model_path is a model of the "
        "first run.",
        ("second fold of a cross validation stops after one epoch", "best_model_path is that of the previous fold"),
    ),
    after=("early-stopping-before-minimum", "resumed-metrics"),
    note="This patch fixes nothing: it warns once for each class, since a program may reuse the callbacks on "
    "purpose. If the program resets a callback before the next run, there is no warning.",
)
