"""Warn when the batch size finder returns a batch size that it has not tried."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title


def _run_power_scaling(original: Callable[..., int], namespace: str) -> Callable[..., int]:
    def run_power_scaling(trainer: Any, new_size: int, batch_arg_name: str, max_trials: int, params: Any) -> int:
        size = original(trainer, new_size, batch_arg_name, max_trials, params)
        if max_trials > 0 and size == new_size * 2**max_trials:  # each trial succeeded and doubled the size
            notices.warn_once(
                "batch-size-untried",
                f"The batch size finder stopped after max_trials={max_trials} trials. It returns {size}, but the "
                f"largest batch size that it has tried is {size // 2}. Halve the result, raise max_trials, or set "
                "LIGHTNING_PATCHES=default,batch-size-finder-tried-size.",
            )
        return size

    return run_power_scaling


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<2.6.0",),
    targets=(Target("pytorch.tuner.batch_size_scaling:_run_power_scaling", _run_power_scaling),),
    upstream=Upstream(pull_requests=(21187,), commit="3998b5d795", fixed_in="2.6.0"),
    impact=Impact(
        "If the batch size finder stops after max_trials in its default mode, it sets twice the batch size of "
        "its last trial; training may then run out of memory."
    ),
    after=("batch-size-finder-tried-size",),
    fixed_by=("batch-size-finder-tried-size",),
    note="This patch fixes nothing: it warns once, when the search has ended. The opt-in patch "
    "batch-size-finder-tried-size fixes the bug.",
)
