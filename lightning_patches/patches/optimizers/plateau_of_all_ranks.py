"""Under DDP, ReduceLROnPlateau steps by one value on all ranks."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target


def _get_monitor_value(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _get_monitor_value(self: Any, key: str) -> Any:
        value = original(self, key)
        if value is None or self.trainer.world_size == 1:
            return value
        return self.trainer.strategy.reduce(value.clone(), reduce_op="mean")  # it may reduce in place

    return _get_monitor_value


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "with ReduceLROnPlateau and a metric that the ranks log without sync_dist"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.loops.epoch.training_epoch_loop:TrainingEpochLoop._get_monitor_value",
            _get_monitor_value,
            before="2.0.0",
        ),
        Target(
            "pytorch.loops.training_epoch_loop:_TrainingEpochLoop._get_monitor_value", _get_monitor_value, since="2.0.0"
        ),
    ),
    impact=Impact(
        "Under DDP, ReduceLROnPlateau monitors the metric of its rank if it was logged without sync_dist. The ranks "
        "get different learning rates, and train different models.",
        (
            "ReduceLROnPlateau gives different learning rates on each rank under DDP",
            "model weights differ between ranks with ReduceLROnPlateau",
        ),
        would_tell="the learning rate on each rank. It is this bug if the rates differ",
    ),
    opt_in="users who train on several devices with ReduceLROnPlateau, and log its metric without sync_dist=True",
    note="Opt-in because the ranks communicate at each step of the scheduler. All ranks use the mean of their values. "
    "Without the patch, log the metric with `self.log(..., sync_dist=True)`.",
)
