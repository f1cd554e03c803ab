"""The learning rate finder records all optimizer steps when gradients are accumulated."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target

_CALLBACK = "pytorch.tuner.lr_finder:_LRCallback"


def is_left_out(trainer: Any) -> bool:
    """True if the batch ends with an optimizer step that the finder does not record."""
    loop = trainer.fit_loop
    return (loop.batch_idx + 1) % trainer.accumulate_grad_batches != 0 and not loop._should_accumulate()


def _recording(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def hook(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        if not is_left_out(trainer):
            original(self, trainer, *args, **kwargs)
            return
        accumulate = trainer.accumulate_grad_batches
        trainer.accumulate_grad_batches = 1  # the original records the last of so many batches
        try:
            original(self, trainer, *args, **kwargs)
        finally:
            trainer.accumulate_grad_batches = accumulate

    return hook


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "the learning rate that is found with accumulate_grad_batches"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_CALLBACK}.on_train_batch_start", _recording),
        Target(f"{_CALLBACK}.on_train_batch_end", _recording),
    ),
    impact=Impact(
        "With accumulate_grad_batches, the learning rate finder leaves out the optimizer step at the end of an epoch "
        "whose batches are no multiple of it. With fewer batches in an epoch than it accumulates, it records nothing "
        "and suggests nothing.",
        (
            "Failed to compute suggestion for learning rate because there are not enough points",
            "lr_find returns no points with accumulate_grad_batches",
        ),
        would_tell="the Trainer has accumulate_grad_batches above the number of batches in an epoch",
    ),
    opt_in="users who search a learning rate while gradients are accumulated",
    signs=("lr_find accumulate_grad_batches", "LearningRateFinder accumulate_grad_batches"),
    after=("lr-finder-skipped-batch",),
    note="Equivalent to a search without accumulation, on batches that are as large: each optimizer step is a point. "
    "Opt-in, because a search that works finds another learning rate with more points. If the batches of an epoch are "
    "a multiple of accumulate_grad_batches, nothing changes.",
)
