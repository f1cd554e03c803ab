"""A LightningModule can be copied and pickled while its DataLoader is iterated."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _getstate(original: None, namespace: str) -> Callable[..., dict[str, Any]]:
    def __getstate__(self: Any) -> dict[str, Any]:  # noqa: N807
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        kept = [None if isinstance(iterator, _BaseDataLoaderIter) else iterator for iterator in self.iterators]
        return {**vars(self), "iterators": kept}

    return __getstate__


PATCH = Patch(
    group="crash",
    affected=("==2.0.0",),
    targets=(Target("pytorch.utilities.combined_loader:_ModeIterator.__getstate__", _getstate, adds=True),),
    upstream=Upstream(
        pull_requests=(17130,),
        commit="337229632a",
        fixed_in="2.0.1",
        tests=("tests/tests_pytorch/utilities/test_combined_loader.py::test_combined_loader_can_be_pickled",),
    ),
    impact=Impact(
        "copy.deepcopy() or pickle of the LightningModule, the Trainer or a CombinedLoader fails during an epoch, for "
        "example in a callback that keeps an average of the weights.",
        ("NotImplementedError: ('{} cannot be pickled', '_SingleProcessDataLoaderIter')",),
        error="NotImplementedError: ('{} cannot be pickled', '_SingleProcessDataLoaderIter')",
    ),
    note="The copy of a LightningModule includes a copy of its Trainer, as with every copy in 2.0.0. From "
    "2.0.1 on it does not.",
)
