"""The batch size finder tries a smaller size if one for the whole dataset does not fit."""

from __future__ import annotations

from typing import Any, Callable, Optional

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target


def _adjust_batch_size(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def adjust_batch_size(
        trainer: Any,
        batch_arg_name: str = "batch_size",
        factor: float = 1.0,
        value: Optional[int] = None,
        desc: Optional[str] = None,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[int, bool]:
        size, changed = original(trainer, batch_arg_name, factor, value, desc, *args, **kwargs)
        smaller = value if value is not None else int(size * factor)
        if desc != "failed" or changed or not 0 < smaller < size:
            return size, changed
        parsing = upstream_module(namespace, "pytorch.utilities.parsing")
        parsing.lightning_setattr(trainer.lightning_module, batch_arg_name, smaller)
        return smaller, True

    return adjust_batch_size


PATCH = Patch(
    added="0.3.0",
    group="hang",
    changes_results=Effect(
        "numbers", "the batch size that is found, if the whole dataset is a batch that does not fit"
    ),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.tuner.batch_size_scaling:_adjust_batch_size", _adjust_batch_size),),
    impact=Impact(
        "If memory runs out at a batch size that is not below the length of the dataset, the batch size finder tries "
        'it again: with mode="binsearch" for ever, and with mode="power" it returns the size that does not fit.',
        (
            "scale_batch_size never ends with mode='binsearch'",
            "scale_batch_size returns a batch size that runs out of memory with a small dataset",
        ),
        would_tell="that the dataset is not longer than the batch size that fails",
    ),
)
