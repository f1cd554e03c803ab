"""ThroughputMonitor counts batches of any size, and excludes the time of validation."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_MONITOR = "pytorch.callbacks.throughput_monitor:ThroughputMonitor"


def _start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _start(self: Any, trainer: Any) -> None:
        original(self, trainer)
        counted = vars(self).setdefault("_counted", {})
        if trainer.state.fn == "fit" or trainer.state.stage not in counted:
            counted[trainer.state.stage] = [0, 0]

    return _start


def _update(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _update(self: Any, trainer: Any, pl_module: Any, batch: Any, iter_num: int) -> None:
        counted = vars(self).get("_counted", {}).get(trainer.state.stage)
        if counted is None:  # a subclass did not call our _start
            original(self, trainer, pl_module, batch, iter_num)
            return
        throughput = self._throughputs[trainer.state.stage]
        update = throughput.update

        def update_with_sums(*, samples: Any, batches: int, **others: Any) -> None:
            counted[0] += batches
            counted[1] += samples
            update(batches=counted[0], samples=counted[1], **others)

        throughput.update = update_with_sums
        try:
            original(self, trainer, pl_module, batch, 1)  # passing 1 gives the number of samples in one batch
        finally:
            del throughput.update

    return _update


def _on_validation_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_validation_end(self: Any, trainer: Any, *args: Any) -> None:
        original(self, trainer, *args)
        stages = upstream_module(namespace, "pytorch.trainer.states").RunningStage
        training, validating = stages.TRAINING, stages.VALIDATING
        if trainer.sanity_checking or trainer.state.fn != "fit" or validating not in self._t0s:
            return  # no training came before, or this rank measures no time
        trained = self._throughputs[training]._time
        validated = self._throughputs[validating]._time
        # The windows contain times since the start, not times of single batches, so the last entry is the total.
        end = self._t0s[validating] + (validated[-1] if validated else 0.0)
        self._t0s[training] = end - (trained[-1] if trained else 0.0)

    return on_validation_end


PATCH = Patch(
    added="0.2.0",
    group="crash",
    changes_results=Effect(
        "numbers",
        "ThroughputMonitor logs the samples of batches that differ in size, counts batches from the start "
        "of this run (and of each validation in it), and excludes the time of validation",
    ),
    affected=(">=2.2.0,<2.6.0",),
    targets=(
        Target(f"{_MONITOR}._start", _start),
        Target(f"{_MONITOR}._update", _update),
        Target(f"{_MONITOR}.on_validation_end", _on_validation_end),
    ),
    upstream=Upstream(issues=(21257, 20235), pull_requests=(21291, 20236), fixed_in="2.6.0"),
    impact=Impact(
        "ThroughputMonitor ends a run with a ValueError if it validates within an epoch, or if its batches "
        "differ in size, as the last batch often does.",
        ("Expected the value to increase, last: ", "ThroughputMonitor ValueError"),
        error="ValueError: Expected the value to increase, last: ..., current: ...",
    ),
)
