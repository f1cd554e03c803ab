"""Warn when the batch size finder returns an untried batch size because it reached max_val."""

from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import observe, warn, warning
from lightning_patches.patches.finders import batch_size_finder_limit
from lightning_patches.patches.finders.batch_size_finder_limit import largest_tried

_SCALING = "pytorch.tuner.batch_size_scaling"


def _run_power_scaling(original: Callable[..., int], namespace: str) -> Callable[..., int]:
    def after(
        _: None,
        size: int,
        trainer: Any,
        new_size: int,
        batch_arg_name: str,
        max_trials: int,
        params: Any,
        max_val: int = 8192,
    ) -> None:
        if size >= max_val:
            _warn(size, new_size, max_val)

    return observe(original, after=after)


def _run_binsearch_scaling(original: Callable[..., int], namespace: str) -> Callable[..., int]:
    def after(
        _: None,
        size: int,
        trainer: Any,
        new_size: int,
        batch_arg_name: str,
        max_trials: int,
        params: Any,
        margin: float,
        max_val: int = 8192,
    ) -> None:
        if size >= int(max_val * (1 - margin)):
            _warn(size, new_size, max_val)

    return observe(original, after=after)


def _warn(size: int, first: int, max_val: int) -> None:
    tried = f"the largest that it has tried is {largest_tried(first, max_val)}" if first < max_val else "it tried none"
    warn(
        "batch-size-finder-limit",
        f"The batch size finder reached max_val={max_val} and returns {size}, but {tried}. Use that one, raise "
        "max_val, or set LIGHTNING_PATCHES=default,batch-size-finder-limit.",
        stacklevel=5,
    )


PATCH = warning(
    Target(f"{_SCALING}:_run_power_scaling", _run_power_scaling),
    Target(f"{_SCALING}:_run_binsearch_scaling", _run_binsearch_scaling),
    fixes=(batch_size_finder_limit,),
    added="0.3.0",
    when=", when the search has ended",
)
