"""With manual optimization, LearningRateMonitor follows the scheduler's interval."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _configure_schedulers(original: Callable[[list[Any]], list[Any]], namespace: str) -> Callable[..., list[Any]]:
    def _configure_schedulers_manual_opt(schedulers: list[Any]) -> list[Any]:
        configs = original([_without_interval(each) for each in schedulers])
        for config, given in zip(configs, schedulers):
            if isinstance(given, dict) and "interval" in given:
                config.interval = given["interval"]
        return configs

    return _configure_schedulers_manual_opt


def _without_interval(scheduler: Any) -> Any:
    """Return the dictionary without the key that the original ignores with a warning."""
    if not isinstance(scheduler, dict):
        return scheduler
    return {key: value for key, value in scheduler.items() if key != "interval"}


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "learning rates in the log"),
    affected=(">=1.8.0,<1.9.0",),
    targets=(Target("pytorch.core.optimizer:_configure_schedulers_manual_opt", _configure_schedulers),),
    upstream=Upstream(pull_requests=(16308,), fixed_in="1.9.0"),
    impact=Impact(
        "With manual optimization and a scheduler with interval='step', LearningRateMonitor logs the learning rate "
        "once per epoch only.",
        ("LearningRateMonitor does not log with manual optimization",),
    ),
    after=("scheduler-config-accepted",),
    note="Without the patch, create LearningRateMonitor(logging_interval='step').",
)
