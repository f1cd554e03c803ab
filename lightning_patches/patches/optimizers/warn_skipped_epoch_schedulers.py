"""Warn when no scheduler was stepped for an epoch that on_train_batch_start ended."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title

_FIT_LOOP = "pytorch.loops.fit_loop:_FitLoop"
_COUNTS = "_lightning_patches_scheduler_steps"


def _steps(loop: Any) -> list[Any]:
    """Return the number of steps of each scheduler with interval "epoch"."""
    configs = loop.trainer.strategy.lr_scheduler_configs
    return [vars(config.scheduler).get("last_epoch") for config in configs if config.interval == "epoch"]


def _advance(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def advance(self: Any) -> None:
        setattr(self, _COUNTS, _steps(self))
        original(self)

    return advance


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_advance_end(self: Any) -> None:
        progress = self.epoch_loop.batch_progress.current
        was_skipped = progress.processed > progress.started  # the last batch was never started
        original(self)
        before = vars(self).pop(_COUNTS, [])
        is_due = was_skipped and self.trainer.lightning_module.automatic_optimization
        if is_due and before and _steps(self) == before:
            notices.warn_once(
                "skipped-epoch-schedulers",
                "on_train_batch_start ended the epoch by returning -1, and no learning rate scheduler was stepped: "
                "Lightning below 2.6.0 omits it then. Step them in on_train_epoch_end, or set "
                "LIGHTNING_PATCHES=default,skipped-epoch-schedulers.",
            )

    return on_advance_end


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<2.6.0",),
    targets=(Target(f"{_FIT_LOOP}.advance", _advance), Target(f"{_FIT_LOOP}.on_advance_end", _on_advance_end)),
    witnesses=("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.advance",),
    upstream=Upstream(issues=(21296,), pull_requests=(21307,), commit="f7692a64a5", fixed_in="2.6.0"),
    impact=Impact(
        "If on_train_batch_start returns -1 to skip the rest of an epoch, the learning rate schedulers do not "
        "step at the end of that epoch: the learning rate is not decayed."
    ),
    note="This patch fixes nothing: it warns once, after the first such epoch, unless the program steps a "
    "scheduler itself. The opt-in patch skipped-epoch-schedulers fixes the bug.",
    fixed_by=("skipped-epoch-schedulers",),
    after=("resumed-metrics", "epoch-metrics-on-all-ranks"),
)
