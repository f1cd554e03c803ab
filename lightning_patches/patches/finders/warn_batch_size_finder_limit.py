"""Warn when the batch size finder returns an untried batch size because it reached max_val."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, name_and_title
from lightning_patches.patches.finders.batch_size_finder_limit import largest_tried

_SCALING = "pytorch.tuner.batch_size_scaling"


def _run_power_scaling(original: Callable[..., int], namespace: str) -> Callable[..., int]:
    def run_power_scaling(
        trainer: Any, new_size: int, batch_arg_name: str, max_trials: int, params: Any, max_val: int = 8192
    ) -> int:
        size = original(trainer, new_size, batch_arg_name, max_trials, params, max_val)
        if size >= max_val:
            _warn(size, new_size, max_val)
        return size

    return run_power_scaling


def _run_binsearch_scaling(original: Callable[..., int], namespace: str) -> Callable[..., int]:
    def run_binsearch_scaling(
        trainer: Any,
        new_size: int,
        batch_arg_name: str,
        max_trials: int,
        params: Any,
        margin: float,
        max_val: int = 8192,
    ) -> int:
        size = original(trainer, new_size, batch_arg_name, max_trials, params, margin, max_val)
        if size >= int(max_val * (1 - margin)):
            _warn(size, new_size, max_val)
        return size

    return run_binsearch_scaling


def _warn(size: int, first: int, max_val: int) -> None:
    tried = f"the largest that it has tried is {largest_tried(first, max_val)}" if first < max_val else "it tried none"
    notices.warn_once(
        "batch-size-finder-limit",
        f"The batch size finder reached max_val={max_val} and returns {size}, but {tried}. Use that one, raise "
        "max_val, or set LIGHTNING_PATCHES=default,batch-size-finder-limit.",
    )


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.6.0,<=2.6.6",),
    targets=(
        Target(f"{_SCALING}:_run_power_scaling", _run_power_scaling),
        Target(f"{_SCALING}:_run_binsearch_scaling", _run_binsearch_scaling),
    ),
    impact=Impact(
        "If the batch size finder reaches max_val (8192 by default), it sets that size, or a larger one, "
        "without a trial; training may then run out of memory."
    ),
    after=("batch-size-finder-limit",),
    fixed_by=("batch-size-finder-limit",),
    note="This patch fixes nothing: it warns once, when the search has ended. The opt-in patch "
    "batch-size-finder-limit fixes the bug.",
)
