"""Warn when a scheduler never steps, because its frequency exceeds the batches of an epoch."""

import inspect
from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import observe, warn, warning
from lightning_patches.patches.optimizers import scheduler_frequency_in_steps


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=_before)


def _before(self: Any) -> None:
    progress = self.epoch_loop.batch_progress
    batches, total = progress.current.ready, progress.total.ready
    if not (progress.is_last_batch or batches == self.max_batches):
        return
    for config in self.trainer._accelerator_connector.strategy.lr_scheduler_configs:
        is_due = config.interval == "step" and batches < config.frequency <= total and not config.reduce_on_plateau
        if is_due and inspect.getattr_static(config.scheduler, "last_epoch", None) == 0:
            warn(
                "scheduler-never-steps",
                f"The learning rate scheduler with interval='step' and frequency={config.frequency} never steps: "
                f"Lightning counts the batches of each epoch anew, and an epoch has {batches}. Use frequency=1 and a "
                "scheduler with longer steps, or set LIGHTNING_PATCHES=default,scheduler-frequency-in-steps.",
            )


PATCH = warning(
    Target("pytorch.loops.fit_loop:_FitLoop.on_advance_end", _on_advance_end),
    fixes=(scheduler_frequency_in_steps,),
    added="0.3.0",
    affected=(">=2.0.0,<=2.6.6",),
    witnesses=(scheduler_frequency_in_steps.PATCH.targets[0].location,),
    after=("resumed-metrics", "epoch-metrics-on-all-ranks", "resumed-epoch-mean"),
    when=", at the end of the epoch in which the scheduler would have stepped",
)
