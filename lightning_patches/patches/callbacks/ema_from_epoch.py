"""EMAWeightAveraging averages nothing before update_starting_at_epoch."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream, name_and_title


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        if not is_early(self, trainer.current_epoch, namespace):
            original(self, trainer, *args, **kwargs)

    return on_train_batch_end


def is_early(callback: Any, epoch: int, namespace: str) -> bool:
    """True if the first epoch to average is still to come, and no step was given to start at."""
    kind = upstream_module(namespace, "pytorch.callbacks.weight_averaging").EMAWeightAveraging
    if not isinstance(callback, kind) or type(callback).should_update is not kind.should_update:
        return False
    start = callback.update_starting_at_epoch
    return start is not None and callback.update_starting_at_step is None and epoch < start


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "the average begins at the given epoch"),
    affected=(">=2.6.0,<=2.6.6",),
    targets=(Target("pytorch.callbacks.weight_averaging:WeightAveraging.on_train_batch_end", _on_train_batch_end),),
    upstream=Upstream(),
    impact=Impact(
        "EMAWeightAveraging(update_starting_at_epoch=...) averages from the first step on, as without the argument.",
        (
            "update_starting_at_epoch of EMAWeightAveraging has no effect",
            "EMAWeightAveraging averages before update_starting_at_epoch",
        ),
    ),
    opt_in="users who give EMAWeightAveraging an update_starting_at_epoch",
    signs=("EMAWeightAveraging update_starting_at_epoch",),
    note="Equivalent to a subclass whose should_update is False before that epoch. From that epoch on, it averages "
    "after each step and at the end of each epoch, as on stock. Opt-in, as runs of today end with other weights. "
    "With update_starting_at_step, which decides on the steps, nothing changes.",
)
