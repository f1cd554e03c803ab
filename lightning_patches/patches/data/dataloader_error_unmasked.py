"""An error while a DataLoader starts is not hidden by another error."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _reset(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def reset(self: Any) -> None:
        loader = self._combined_loader
        if loader is not None and getattr(loader, "_iterator", self) is None:
            # Creating the iterator failed. The loader has no length then, and computing it would raise a second error
            # that hides the first one.
            self.fetched, self.length, self.done = 0, None, False
            return
        original(self)

    return reset


PATCH = Patch(
    group="crash",
    affected=(">=2.1.0,<=2.6.6",),
    targets=(Target("pytorch.loops.fetchers:_DataFetcher.reset", _reset),),
    upstream=Upstream(issues=(19373,)),
    impact=Impact(
        "Any error while the training DataLoader starts (workers, pickling, sampler) is replaced by a "
        "misleading second error, and the Trainer's cleanup is interrupted.",
        ("Please call `iter(combined_loader)` first.",),
        error="RuntimeError: Please call `iter(combined_loader)` first.",
        frames=("/pytorch/loops/fetchers.py", "/pytorch/utilities/combined_loader.py"),
    ),
    note="Loaders that start, and errors that are visible without the patch, are unchanged. A script that "
    "catches the misleading RuntimeError must catch the real error instead. To see the real error without "
    "the patch, iterate over the DataLoader without a Trainer.",
)
