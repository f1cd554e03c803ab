"""A custom logger does not need an experiment attribute."""

import inspect
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _call_setup_hook(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _call_setup_hook(trainer: Any) -> None:
        # The original handles loggers with __getattr__ or __slots__.
        without = [
            logger
            for logger in trainer._loggers
            if hasattr(logger, "__dict__")
            and inspect.getattr_static(logger, "experiment", logger) is logger
            and not hasattr(type(logger), "__getattr__")
        ]
        for logger in without:
            vars(logger)["experiment"] = None  # the original reads it from each logger
        try:
            original(trainer)
        finally:
            for logger in without:
                vars(logger).pop("experiment", None)

    return _call_setup_hook


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.0.5,<2.0.8",),
    targets=(Target("pytorch.trainer.call:_call_setup_hook", _call_setup_hook),),
    upstream=Upstream(pull_requests=(18093,), commit="281d6a27d1", fixed_in="2.0.8"),
    impact=Impact(
        "A run with a Logger subclass that has no experiment attribute fails before it starts.",
        ("object has no attribute 'experiment'",),
        error="AttributeError: '...' object has no attribute 'experiment'",
    ),
)
