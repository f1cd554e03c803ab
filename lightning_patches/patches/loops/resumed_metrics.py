"""A resumed run has its monitored metrics, and schedulers step once for the resumed epoch."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.loops import _saved_batch

_EPOCH_LOOP = "pytorch.loops.training_epoch_loop:_TrainingEpochLoop"
_FIT_LOOP = "pytorch.loops.fit_loop:_FitLoop"

_SAVED = "_monitored_metrics"
"""Key of the saved metrics in the state of the epoch loop, and attribute of a loop that has loaded a state."""
_RESUMED = "_is_in_resumed_epoch"
"""Attribute of the epoch loop: True in the resumed epoch, whose metrics the first process may have computed."""
_ENDING = "_is_ending_resumed_epoch"
"""Attribute of the epoch loop: True if schedulers other than ReduceLROnPlateau have already stepped for this epoch."""


def _monitored(trainer: Any) -> set[str]:
    """The names of the metrics that schedulers and callbacks monitor."""
    strategy = trainer._accelerator_connector.strategy  # a Trainer subclass may override `strategy`
    monitors = [config.monitor for config in strategy.lr_scheduler_configs if config.reduce_on_plateau]
    monitors += [vars(callback).get("monitor") for callback in trainer.callbacks]
    return {monitor for monitor in monitors if isinstance(monitor, str)}


def _on_save_checkpoint(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def on_save_checkpoint(self: Any) -> Any:
        state = original(self)
        metrics = self.trainer._logger_connector._callback_metrics
        values = {name: metrics.get(name) for name in sorted(_monitored(self.trainer))}
        saved = {name: value.item() for name, value in values.items() if hasattr(value, "item")}
        if saved:
            state[_SAVED] = saved
        return state

    return on_save_checkpoint


def _on_load_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_load_checkpoint(self: Any, state_dict: Any) -> None:
        original(self, state_dict)
        epoch = self.trainer.fit_loop.epoch_progress.current
        # True if the checkpoint was saved in on_train_epoch_end, before ReduceLROnPlateau steps.
        has_ended = epoch.ready == epoch.processed == epoch.completed + 1
        setattr(self, _SAVED, (state_dict.get(_SAVED, {}), has_ended))

    return on_load_checkpoint


def _reset(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def reset(self: Any) -> None:
        loop, trainer = self.epoch_loop, self.trainer
        saved, has_ended = vars(loop).pop(_SAVED, (None, False))
        if saved is not None and trainer.ckpt_path is not None:  # a search for a learning rate has no ckpt_path
            metrics = trainer._logger_connector._callback_metrics
            for name, value in saved.items():
                metrics.setdefault(name, _tensor(value, trainer.strategy.root_device))
            setattr(loop, _RESUMED, True)
            if _is_within(loop):
                loop.update_lr_schedulers("step", update_plateau_schedulers=True)
            if has_ended:
                _step_plateaus(self)
                delattr(loop, _RESUMED)
        original(self)

    return reset


def _is_within(loop: Any) -> bool:
    """True if the checkpoint was saved at the end of a batch after which only ReduceLROnPlateau steps.

    Below 2.5.0, mid-epoch-resume steps it.
    """
    batch = loop.batch_progress.current
    if not hasattr(loop, "restarted_on_last") or not batch.ready == batch.processed == batch.completed + 1:
        return False
    return not (loop._num_ready_batches_reached() or _saved_batch.is_validation_due(loop))


def _tensor(value: float, device: Any) -> Any:
    """Return a tensor of torch's default dtype, or in double precision if the value needs it."""
    import torch

    exact = torch.tensor(value, dtype=torch.float64)
    short = exact.to(torch.get_default_dtype())
    return (short if short == exact else exact).to(device)


def _step_plateaus(fit_loop: Any) -> None:
    """Step ReduceLROnPlateau for the last epoch that was processed."""
    loop, epoch = fit_loop.epoch_loop, fit_loop.epoch_progress.current
    completed, epoch.completed = epoch.completed, epoch.processed - 1  # trainer.current_epoch, as in the epoch
    try:
        if loop._num_ready_batches_reached():
            loop.update_lr_schedulers("epoch", update_plateau_schedulers=True)
    finally:
        epoch.completed = completed


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_advance_end(self: Any) -> None:
        loop = self.epoch_loop
        if not vars(loop).get(_RESUMED):
            original(self)
            return
        restarting = self.restarting
        try:
            setattr(loop, _ENDING, restarting)
            original(self)
            setattr(loop, _ENDING, False)
            if restarting:
                _step_plateaus(self)
        finally:
            delattr(loop, _ENDING)
            delattr(loop, _RESUMED)

    return on_advance_end


def _update_learning_rates(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update_learning_rates(self: Any, interval: str, update_plateau_schedulers: bool) -> None:
        if vars(self).get(_ENDING) and interval == "epoch" and not update_plateau_schedulers:
            return
        if not vars(self).get(_RESUMED) or not update_plateau_schedulers:
            original(self, interval, update_plateau_schedulers)
            return
        strategy = self.trainer.strategy
        configs = strategy.lr_scheduler_configs
        strategy.lr_scheduler_configs = [
            config
            for config in configs
            if not config.reduce_on_plateau or self._get_monitor_value(config.monitor) is not None
        ]
        try:
            original(self, interval, update_plateau_schedulers)
        finally:
            strategy.lr_scheduler_configs = configs

    return update_learning_rates


def _run_early_stopping_check(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def run_early_stopping_check(self: Any, trainer: Any) -> None:
        loop = getattr(getattr(trainer, "fit_loop", None), "epoch_loop", None)  # absent in the program's own loop
        if getattr(loop, _RESUMED, False) is True and self.monitor not in trainer.callback_metrics:
            return
        original(self, trainer)

    return run_early_stopping_check


def _load_state_dict(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def load_state_dict(self: Any, state_dict: Any) -> None:
        original(self, state_dict)
        if self.dirpath == state_dict.get("dirpath", self.dirpath):
            self.current_score = state_dict.get("current_score", self.current_score)

    return load_state_dict


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "learning rates, early stopping and best checkpoints of a resumed run"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_EPOCH_LOOP}.on_save_checkpoint", _on_save_checkpoint),
        Target(f"{_EPOCH_LOOP}.on_load_checkpoint", _on_load_checkpoint),
        Target(f"{_FIT_LOOP}.reset", _reset),
        Target(f"{_FIT_LOOP}.on_advance_end", _on_advance_end),
        Target(f"{_EPOCH_LOOP}._update_learning_rates", _update_learning_rates),
        Target("pytorch.callbacks.early_stopping:EarlyStopping._run_early_stopping_check", _run_early_stopping_check),
        Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint.load_state_dict", _load_state_dict),
    ),
    upstream=Upstream(issues=(18595, 14699, 20495)),
    impact=Impact(
        "A resumed run has lost the metrics that EarlyStopping, ReduceLROnPlateau and ModelCheckpoint monitor. "
        "If the checkpoint was saved after a validation, EarlyStopping, or ReduceLROnPlateau with "
        "interval='step', ends the run with an error. ReduceLROnPlateau misses its step for the resumed epoch. "
        "Below 2.5.0, other schedulers that step by epoch step twice for that epoch.",
        (
            "learning rate differs after resuming with ReduceLROnPlateau",
            "scheduler such as StepLR steps a second time for an epoch that was finished, after resuming",
            "scheduler steps twice after resuming from a checkpoint that was saved after validation",
            "Early stopping conditioned on metric ... which is not available after resuming",
        ),
        consequences=(
            Consequence(
                ("conditioned on metric ... which is not available",),
                "Restored all states from the checkpoint",
                "the run was resumed, and has lost the metrics of the validation before its checkpoint",
                unless=r"(?:of the following|available metrics are): .{0,1000}\bval",
            ),
        ),
    ),
    after=("eval-mode-kept", "resume-on-last-batch", "early-stopping-before-minimum"),
    opt_in="users who resume runs with EarlyStopping or ReduceLROnPlateau",
    signs=("ckpt_path EarlyStopping", "ckpt_path ReduceLROnPlateau"),
    note="Opt-in because programs step the scheduler themselves, or see from an empty callback_metrics that "
    "this process has not validated yet. The patch saves the monitored metrics in the checkpoint, in the "
    "state of the epoch loop. Lightning without the patch ignores them. If a checkpoint lacks them, "
    "EarlyStopping and ReduceLROnPlateau skip one check or step, without an error. In runs that are not "
    "resumed, only these values in the checkpoints change. Schedulers that a program steps itself, in "
    "manual optimization, are unchanged.",
)
