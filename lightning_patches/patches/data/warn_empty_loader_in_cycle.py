"""Warn when a CombinedLoader stops early because one of its loaders is empty."""

from typing import Any, Callable

from lightning_patches.patch import Consequence, Impact, Target, Upstream
from lightning_patches.patches._warning import observe, warn, warning


def _run(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    return observe(original, after=_after)


def _after(_: None, __: None, self: Any, data_fetcher: Any) -> None:
    iterator = self.trainer.fit_loop._combined_loader._iterator
    consumed = getattr(iterator, "_consumed", ())  # only max_size_cycle has it
    is_early = data_fetcher.done and data_fetcher.fetched < self.trainer.fit_loop.max_batches
    if is_early and any(consumed) and not all(consumed):
        places = [place for place, is_consumed in enumerate(consumed) if is_consumed]
        names = ", ".join(f"number {place} ({type(iterator.iterables[place]).__name__})" for place in places)
        warn(
            "empty-loader-in-cycle",
            "CombinedLoader(mode='max_size_cycle') stopped although some of its loaders have batches left, because "
            f"one of these loaders is empty when it starts again: {names}. Remove it, or use mode='max_size'.",
        )


PATCH = warning(
    Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.run", _run),
    affected=(">=2.0.0,<=2.6.6",),
    upstream=Upstream(issues=(21893,)),
    impact=Impact(
        "A CombinedLoader in mode max_size_cycle stops at once if one of its loaders is empty, without a warning: "
        "nothing is trained.",
        (
            "fit trains nothing with CombinedLoader max_size_cycle",
            "max_size_cycle yields no batches",
            "training runs no steps with several dataloaders of which one is empty",
        ),
        consequences=(
            Consequence(
                ("conditioned on metric ... which is not available. ... of the following: ``",),
                "Total length of .{1,30} across ranks is zero",
                "a DataLoader was empty, and nothing was logged",
            ),
        ),
    ),
    added="0.2.0",
    when=", when an epoch has ended",
    note="Remove the empty loader.",
)
