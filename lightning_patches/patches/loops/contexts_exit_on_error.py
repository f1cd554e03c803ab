"""An error in a data loader hook or in isolate_rng() leaves nothing changed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator

from lightning_patches.patch import Effect, Impact, Patch, Target


def _exits(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    @contextmanager
    def context(*args: Any, **kwargs: Any) -> Iterator[Any]:
        inner = original(*args, **kwargs)
        value = inner.__enter__()
        try:
            yield value
        finally:
            inner.__exit__(None, None, None)  # Lightning's generator restores only if it gets no error

    def replacement(*args: Any, **kwargs: Any) -> Any:
        return context(*args, **kwargs)

    return replacement


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "random numbers after a sanity check or a search that ended in an error"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("fabric.utilities.data:_replace_dunder_methods", _exits),
        Target("pytorch.utilities.seed:isolate_rng", _exits),
    ),
    impact=Impact(
        "An error in train_dataloader(), in another data loader hook or in Fabric.launch(function) leaves DataLoader "
        "and BatchSampler of torch patched, once more with each error. isolate_rng() does not reset the random state "
        "if its block ends in an error.",
        (
            "DataLoader.__init__ stays wrapped after an exception in train_dataloader",
            "random state is not restored after an exception in isolate_rng",
        ),
        would_tell="that a data loader hook, the sanity check or a learning rate search ended in an error",
    ),
)
