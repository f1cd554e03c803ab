"""If the batch size finder reaches max_val, it returns a size that it has tried."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target

_SCALING = "pytorch.tuner.batch_size_scaling"


def largest_tried(first: int, max_val: int) -> int:
    """Return the largest size that a search starting at ``first`` tries before it reaches ``max_val``.

    The search doubles the size after each trial.
    """
    size = first
    while size * 2 < max_val:
        size *= 2
    return size


def _run_power_scaling(original: Callable[..., int], namespace: str) -> Callable[..., int]:
    def run_power_scaling(
        trainer: Any, new_size: int, batch_arg_name: str, max_trials: int, params: Any, max_val: int = 8192
    ) -> int:
        size = original(trainer, new_size, batch_arg_name, max_trials, params, max_val)
        if size < max_val or new_size >= max_val:
            return size
        return _set(trainer, batch_arg_name, largest_tried(new_size, max_val), namespace)

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
        if size < int(max_val * (1 - margin)) or new_size >= max_val:
            return size
        tried = largest_tried(new_size, max_val)
        return _set(trainer, batch_arg_name, max(1, int(tried * (1 - margin))), namespace)

    return run_binsearch_scaling


def _set(trainer: Any, name: str, size: int, namespace: str) -> int:
    scaling: Any = upstream_module(namespace, _SCALING)
    scaling._adjust_batch_size(trainer, name, value=size)
    scaling._reset_dataloaders(trainer)
    return size


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "the batch size that is found"),
    affected=(">=2.6.0,<=2.6.6",),
    targets=(
        Target(f"{_SCALING}:_run_power_scaling", _run_power_scaling),
        Target(f"{_SCALING}:_run_binsearch_scaling", _run_binsearch_scaling),
    ),
    impact=Impact(
        "If the batch size finder reaches max_val (8192 by default), it sets that size, or a larger one, "
        "without a trial; training may then run out of memory.",
        ("CUDA out of memory after the batch size finder reached the maximum batch size limit",),
    ),
    opt_in="users who let the batch size finder reach max_val on 2.6.0 or later, and train with its result",
    signs=("scale_batch_size", "BatchSizeFinder"),
    note="The patch is equivalent to a max_trials that ends the search at the largest size below max_val. "
    "Opt-in because programs that work train with the larger size. A search that starts at max_val or "
    "above, and so tries nothing, is unchanged.",
)
