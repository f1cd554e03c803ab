"""An error in a data loader hook leaves torch's DataLoader unpatched."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator

from lightning_patches.patch import Impact, Patch, Target


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
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("fabric.utilities.data:_replace_dunder_methods", _exits),),
    impact=Impact(
        "An error in train_dataloader(), in another data loader hook or in Fabric.launch(function) leaves DataLoader "
        "and BatchSampler of torch patched, once more with each error.",
        ("DataLoader.__init__ stays wrapped after an exception in train_dataloader",),
        would_tell="that a data loader hook ended in an error",
    ),
)
