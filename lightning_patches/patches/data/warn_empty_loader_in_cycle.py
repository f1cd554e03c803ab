"""Warn when a CombinedLoader stops early because one of its loaders is empty."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Consequence, Impact, Patch, Target, Upstream, name_and_title


def _next(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __next__(self: Any) -> Any:  # noqa: N807
        try:
            return original(self)
        except StopIteration:
            if not all(self._consumed):
                notices.warn_once(
                    "empty-loader-in-cycle",
                    "CombinedLoader(mode='max_size_cycle') stopped although some of its loaders have batches left, "
                    f"because one of these loaders is empty when it starts again: {_names(self)}. Remove it, or use "
                    "mode='max_size'.",
                )
            raise

    return __next__


def _names(iterator: Any) -> str:
    places = [place for place, consumed in enumerate(iterator._consumed) if consumed]
    return ", ".join(f"number {place} ({type(iterator.iterables[place]).__name__})" for place in places)


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.utilities.combined_loader:_MaxSizeCycle.__next__", _next),),
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
    after=("init-module-data",),
    note="This patch fixes nothing: it warns once. Remove the empty loader.",
)
