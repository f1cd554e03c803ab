"""ReduceLROnPlateau waits for validation if validation does not run in every epoch."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_EPOCH_LOOP = "pytorch.loops.training_epoch_loop:_TrainingEpochLoop"

_AWAITED = "_metrics_of_later_validations"
"""Attribute of the epoch loop, and key of its state in a checkpoint: metrics that a scheduler has waited for."""


def _update_learning_rates(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update_learning_rates(self: Any, interval: str, update_plateau_schedulers: bool) -> None:
        in_turn = update_plateau_schedulers and interval == "epoch"
        # This check comes first, because the program may override the properties that are read below.
        if not in_turn or self.trainer.check_val_every_n_epoch in (None, 1):
            original(self, interval, update_plateau_schedulers)
            return
        strategy = self.trainer.strategy
        configs = strategy.lr_scheduler_configs
        waiting = [config for config in configs if _awaits_validation(self, config)]
        if not waiting:
            original(self, interval, update_plateau_schedulers)
            return
        strategy.lr_scheduler_configs = [config for config in configs if not any(config is other for other in waiting)]
        try:
            original(self, interval, update_plateau_schedulers)
        finally:
            strategy.lr_scheduler_configs = configs

    return update_learning_rates


def _awaits_validation(loop: Any, config: Any) -> bool:
    """True if the scheduler's metric is missing in this epoch without validation, or was missing in an earlier one."""
    waits = config.reduce_on_plateau and config.strict and config.interval == "epoch"
    if not (waits and loop.trainer.enable_validation):
        return False
    if loop._should_check_val_epoch() or (loop.trainer.current_epoch + 1) % config.frequency != 0:
        return False
    if loop._get_monitor_value(config.monitor) is None:
        vars(loop).setdefault(_AWAITED, set()).add(config.monitor)
        return True
    # A metric that this epoch of training has logged was only lost when the run was resumed.
    return config.monitor in set(vars(loop).get(_AWAITED, ())).difference(_logged_names(loop))


def _logged_names(loop: Any) -> set[str]:
    """The names of the metrics that this epoch of training has logged."""
    metas = [result.meta for result in loop._results.values()]
    return {name for meta in metas for name in (meta.name, meta.forked_name(True), meta.forked_name(False))}


def _on_save_checkpoint(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def on_save_checkpoint(self: Any) -> Any:
        state = original(self)
        awaited = vars(self).get(_AWAITED)
        return {**state, _AWAITED: sorted(awaited)} if awaited else state

    return on_save_checkpoint


def _on_load_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_load_checkpoint(self: Any, state_dict: Any) -> None:
        original(self, state_dict)
        vars(self).pop(_AWAITED, None)
        if _AWAITED in state_dict:
            vars(self)[_AWAITED] = set(state_dict[_AWAITED])

    return on_load_checkpoint


PATCH = Patch(
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_EPOCH_LOOP}._update_learning_rates", _update_learning_rates),
        Target(f"{_EPOCH_LOOP}.on_save_checkpoint", _on_save_checkpoint),
        Target(f"{_EPOCH_LOOP}.on_load_checkpoint", _on_load_checkpoint),
    ),
    upstream=Upstream(issues=(10496, 9815), pull_requests=(21266,)),
    impact=Impact(
        "With check_val_every_n_epoch=2 and a ReduceLROnPlateau that monitors a validation metric, training fails "
        "after its first epoch.",
        ("ReduceLROnPlateau conditioned on metric ... which is not available",),
        error="lightning.fabric.utilities.exceptions.MisconfigurationException: ReduceLROnPlateau conditioned "
        "on metric val_loss which is not available.",
    ),
    after=("resumed-metrics",),
    note="A scheduler that has waited once is skipped in all epochs without validation. Schedulers that find "
    "their metric in the first epoch, and those with strict=False, are unchanged. A misspelled metric "
    "still raises an error, but only at the first validation, or at the end of that epoch if there is no "
    "validation. The open pull request does this for all ReduceLROnPlateau schedulers, even those that "
    'monitor a training metric. Without the patch, set "frequency": check_val_every_n_epoch in the '
    "scheduler's dictionary, as the documentation of configure_optimizers recommends.",
)
