"""Warn when a scheduler never steps, because its frequency exceeds the batches of an epoch."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title


def _update_learning_rates(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update_learning_rates(self: Any, interval: str, update_plateau_schedulers: bool) -> None:
        original(self, interval, update_plateau_schedulers)
        batches, total = self.batch_progress.current.ready, self.batch_progress.total.ready
        is_last = self.batch_progress.is_last_batch or batches == self.trainer.fit_loop.max_batches
        if interval != "step" or update_plateau_schedulers or not is_last:
            return
        for config in self.trainer._accelerator_connector.strategy.lr_scheduler_configs:
            steps = vars(config.scheduler).get("last_epoch")
            if config.interval == "step" and batches < config.frequency <= total and steps == 0:
                notices.warn_once(
                    "scheduler-never-steps",
                    f"The learning rate scheduler with interval='step' and frequency={config.frequency} never steps: "
                    f"Lightning counts the batches of each epoch anew, and an epoch has {batches}. Use frequency=1 "
                    "and a scheduler with longer steps, or set LIGHTNING_PATCHES=default,scheduler-frequency-in-steps.",
                )

    return update_learning_rates


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop._update_learning_rates", _update_learning_rates),
    ),
    upstream=Upstream(issues=(17544,), pull_requests=(21926,)),
    impact=Impact(
        "A scheduler with interval='step' and a frequency above the number of batches in an epoch never steps."
    ),
    after=("scheduler-frequency-in-steps",),
    fixed_by=("scheduler-frequency-in-steps",),
    note="This patch fixes nothing: it warns once, at the end of the epoch in which the scheduler would have stepped. "
    "The opt-in scheduler-frequency-in-steps fixes it. Equivalent to the same program.",
)
