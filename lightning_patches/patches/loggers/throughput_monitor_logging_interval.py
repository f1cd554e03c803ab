"""ThroughputMonitor accepts every logging interval."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


class _LoggingEveryStep:
    """A proxy of the Trainer with log_every_n_steps=1, which always passes the original's check."""

    log_every_n_steps = 1

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trainer, name)


def _setup(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup(self: Any, trainer: Any, pl_module: Any, stage: str) -> None:
        original(self, _LoggingEveryStep(trainer), pl_module, stage)

    return setup


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.2.0,<2.2.1",),
    targets=(Target("pytorch.callbacks.throughput_monitor:ThroughputMonitor.setup", _setup),),
    upstream=Upstream(pull_requests=(19470,), commit="a00a999e0b", fixed_in="2.2.1"),
    impact=Impact(
        "ThroughputMonitor raises an error at the start of training unless accumulate_grad_batches is a "
        "multiple of log_every_n_steps. Even the Trainer's defaults, 1 and 50, raise it.",
        ("The `ThroughputMonitor` only logs when gradient accumulation is finished",),
        error="ValueError: The `ThroughputMonitor` only logs when gradient accumulation is finished. You set ...",
        frames=("/pytorch/callbacks/throughput_monitor.py",),
    ),
)
