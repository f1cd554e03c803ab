"""Warn when max_steps has counted the steps of several optimizers."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Target, Upstream
from lightning_patches.patches._warning import observe, warn, warning


def _on_run_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, after=_after)


def _after(_: None, __: None, self: Any) -> None:
    loop = self.epoch_loop
    steps, batches = loop.manual_optimization.optim_step_progress.total.completed, loop.batch_progress.total.ready
    optimizers = self.trainer._accelerator_connector.strategy._optimizers
    if 0 < loop.max_steps <= steps and batches < steps and len(optimizers) > 1:
        warn(
            "steps-of-several-optimizers",
            f"max_steps={loop.max_steps} ended the training after {batches} batches: trainer.global_step counts "
            f"the steps of all {len(optimizers)} optimizers. ModelCheckpoint(every_n_train_steps=...) and loggers "
            f"count them, too. For {loop.max_steps} batches, pass max_steps={loop.max_steps * steps // batches}.",
        )


PATCH = warning(
    Target("pytorch.loops.fit_loop:_FitLoop.on_run_end", _on_run_end),
    added="0.3.0",
    affected=(">=2.0.0,<=2.6.6",),
    upstream=Upstream(issues=(17958,)),
    impact=Impact(
        "With manual optimization and several optimizers, trainer.global_step counts the steps of all of them: a GAN "
        "trains half of the batches that max_steps seems to allow.",
        (
            "training with two optimizers stops after half of max_steps",
            "global_step increases by 2 per batch with two optimizers",
        ),
    ),
    after=("warn-no-checkpoint",),
    when=", when max_steps has ended a training",
)
