"""The frequency of a scheduler with interval="step" counts optimizer steps across epochs."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _update_learning_rates(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update_learning_rates(self: Any, interval: str, *args: Any, **kwargs: Any) -> None:
        strategy = self.trainer.strategy
        configs = strategy.lr_scheduler_configs
        if interval != "step" or all(config.frequency == 1 for config in configs):
            original(self, interval, *args, **kwargs)
            return
        import dataclasses

        due = [config for config in configs if config.interval != "step" or self.global_step % config.frequency == 0]
        strategy.lr_scheduler_configs = [dataclasses.replace(config, frequency=1) for config in due]
        try:
            original(self, interval, *args, **kwargs)
        finally:
            strategy.lr_scheduler_configs = configs

    return update_learning_rates


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "the learning rate with interval='step' and a frequency above 1"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.loops.training_epoch_loop:_TrainingEpochLoop._update_learning_rates",
            _update_learning_rates,
            since="2.0.0",
        ),
        Target(
            "pytorch.loops.epoch.training_epoch_loop:TrainingEpochLoop._update_learning_rates",
            _update_learning_rates,
            before="2.0.0",
        ),
    ),
    upstream=Upstream(issues=(17544,), pull_requests=(21926,)),
    impact=Impact(
        "A scheduler with interval='step' and a frequency above 1 counts batches instead of optimizer steps, "
        "and starts again in each epoch: with frequency=3 and two batches per epoch it never steps.",
        (
            "scheduler with interval step and a frequency never steps",
            "learning rate stays constant although configure_optimizers returns a scheduler with a frequency",
        ),
    ),
    opt_in="users who set interval='step' and a frequency above 1 for a scheduler",
    signs=("frequency lr_scheduler",),
    after=("plateau-waits-for-validation",),
    note="The patch is equivalent to frequency=1 and a scheduler with longer steps. Opt-in because it changes "
    "the learning rates of programs that work. Nothing changes without accumulation if the frequency "
    "divides the number of batches in an epoch.",
)
