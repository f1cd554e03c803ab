"""Find out if a DataLoader shuffles."""

from typing import Any, Callable

from lightning_patches.patch import Target


def _is_shuffled(original: Callable[[Any], bool], namespace: str) -> Callable[[Any], bool]:
    def _is_dataloader_shuffled(dataloader: Any) -> bool:
        from torch.utils.data import DataLoader

        batch_sampler = dataloader.batch_sampler if isinstance(dataloader, DataLoader) else None
        if batch_sampler is None:
            return original(dataloader)
        # If a loader was created with a batch sampler, its own sampler is a default that nothing uses. The sampler that
        # matters is the batch sampler's, if it has one.
        sampler = getattr(batch_sampler, "sampler", batch_sampler)
        return original(_View(dataloader, batch_sampler=None, sampler=sampler))

    return _is_dataloader_shuffled


class _View:
    """A view of an object with some attributes replaced."""

    def __init__(self, viewed: Any, **others: Any) -> None:
        self.__dict__.update(others)
        self.__dict__["_viewed"] = viewed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._viewed, name)


TARGET = Target("pytorch.utilities.data:_is_dataloader_shuffled", _is_shuffled)
