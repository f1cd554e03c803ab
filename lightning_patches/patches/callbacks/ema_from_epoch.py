"""EMAWeightAveraging does not average before update_starting_at_epoch."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        if not is_early(self, trainer.current_epoch, namespace):
            original(self, trainer, *args, **kwargs)

    return on_train_batch_end


def is_early(callback: Any, epoch: int, namespace: str) -> bool:
    """True if update_starting_at_epoch is a later epoch, and update_starting_at_step is not set."""
    kind = upstream_module(namespace, "pytorch.callbacks.weight_averaging").EMAWeightAveraging
    if not isinstance(callback, kind) or type(callback).should_update is not kind.should_update:
        return False
    start = callback.update_starting_at_epoch
    return start is not None and callback.update_starting_at_step is None and epoch < start


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "averaging starts at the given epoch"),
    affected=(">=2.6.0,<=2.6.6",),
    targets=(Target("pytorch.callbacks.weight_averaging:WeightAveraging.on_train_batch_end", _on_train_batch_end),),
    impact=Impact(
        "EMAWeightAveraging(update_starting_at_epoch=...) averages from the first step on, as if the argument "
        "were not set.",
        (
            "update_starting_at_epoch of EMAWeightAveraging has no effect",
            "EMAWeightAveraging averages before update_starting_at_epoch",
        ),
    ),
    opt_in="users who pass update_starting_at_epoch to EMAWeightAveraging",
    signs=("EMAWeightAveraging update_starting_at_epoch",),
    note="The patch is equivalent to a subclass whose should_update returns False before that epoch. From that "
    "epoch on, the callback averages after each step and at the end of each epoch, as without the patch. "
    "Opt-in because existing runs end with other weights. Nothing changes if update_starting_at_step is "
    "set, because it decides which steps are averaged.",
)
