"""Warn when the batch size finder returns a batch size that it has not tried."""

from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import observe, warn, warning
from lightning_patches.patches.finders import batch_size_finder_tried_size


def _run_power_scaling(original: Callable[..., int], namespace: str) -> Callable[..., int]:
    return observe(original, after=_after)


def _after(_: None, size: int, trainer: Any, new_size: int, batch_arg_name: str, max_trials: int, params: Any) -> None:
    if max_trials > 0 and size == new_size * 2**max_trials:  # each trial succeeded and doubled the size
        warn(
            "batch-size-untried",
            f"The batch size finder stopped after max_trials={max_trials} trials. It returns {size}, but the "
            f"largest batch size that it has tried is {size // 2}. Halve the result, raise max_trials, or set "
            "LIGHTNING_PATCHES=default,batch-size-finder-tried-size.",
        )


PATCH = warning(
    Target("pytorch.tuner.batch_size_scaling:_run_power_scaling", _run_power_scaling),
    fixes=(batch_size_finder_tried_size,),
    added="0.3.0",
    when=", when the search has ended",
)
