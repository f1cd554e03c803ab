"""``pytorch/utilities/combined_loader.py``: when the workers of the DataLoaders start and how they are stopped."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches import _runtime
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _shut_down(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _shutdown_workers_and_reset_iterator(dataloader: Any) -> None:
        try:
            original(dataloader)
        except Exception as error:
            if not hasattr(getattr(dataloader, "_iterator", None), "_shutdown_workers"):
                raise
            dataloader._iterator = None
            _runtime.warn_once(
                "worker-shutdown-error",
                f"A DataLoader worker failed while it was being stopped, after its last batch: {error}",
                all_ranks=True,
            )

    return _shutdown_workers_and_reset_iterator


def _getstate(original: None, namespace: str) -> Callable[..., dict[str, Any]]:
    def __getstate__(self: Any) -> dict[str, Any]:  # noqa: N807
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        kept = [None if isinstance(iterator, _BaseDataLoaderIter) else iterator for iterator in self.iterators]
        return {**vars(self), "iterators": kept}

    return __getstate__


def _iter_first(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __iter__(self: Any) -> Any:  # noqa: N807
        self._iterator_idx = self._idx = 0
        self.iterators = [iter(self.iterables[0]), *(None for _ in self.iterables[1:])] if self.iterables else []
        return self

    return __iter__


def _use_next(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _use_next_iterator(self: Any) -> None:
        if self._iterator_idx < len(self.iterators):
            self.iterators[self._iterator_idx] = None  # its workers end
        original(self)
        if self._iterator_idx < len(self.iterators):
            self.iterators[self._iterator_idx] = iter(self.iterables[self._iterator_idx])

    return _use_next_iterator


PATCHES = (
    Patch(
        name="copy-during-training",
        title="A LightningModule can be copied and pickled while its DataLoader is iterated",
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
            "copy.deepcopy() or pickle of the LightningModule, the Trainer or a CombinedLoader during an epoch, as "
            "in a callback that keeps an average of the weights, ends in an error.",
            ("NotImplementedError: ('{} cannot be pickled', '_SingleProcessDataLoaderIter')",),
        ),
        note="The copy of a LightningModule holds a copy of its Trainer, as everywhere in 2.0.0; from 2.0.1 on it does "
        "not.",
    ),
    Patch(
        name="sequential-loader-workers",
        title="Of several validation, test or prediction DataLoaders, only one runs workers at a time",
        group="performance",
        affected=(">=2.0.0,<2.0.3",),
        targets=(
            Target("pytorch.utilities.combined_loader:_Sequential.__iter__", _iter_first),
            Target("pytorch.utilities.combined_loader:_Sequential._use_next_iterator", _use_next),
        ),
        witnesses=("pytorch.utilities.combined_loader:_Sequential.__next__",),
        upstream=Upstream(
            pull_requests=(17639,),
            commit="64d84ccc22",
            fixed_in="2.0.3",
            tests=("tests/tests_pytorch/utilities/test_combined_loader.py::test_combined_loader_simultaneous_workers",),
        ),
        impact=Impact(
            "With several DataLoaders for validation, test or prediction, the workers of all of them are started at "
            "once and stay until the last one is done: out of memory, or out of shared memory, with many of them.",
            ("DataLoader worker is killed by signal: Killed", "too many workers with several val_dataloaders"),
        ),
        note="The workers of a DataLoader start when its turn comes, as from 2.0.3 on, and not all at the beginning.",
    ),
    Patch(
        name="worker-shutdown-error",
        title="A DataLoader worker that fails while it is being stopped does not end the program",
        group="crash",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(Target("pytorch.utilities.combined_loader:_shutdown_workers_and_reset_iterator", _shut_down),),
        upstream=Upstream(
            issues=(21703,),
            pull_requests=(21708,),
            commit="1bd737acb0",
            tests=(
                "tests/tests_pytorch/utilities/test_combined_loader.py"
                "::test_combined_loader_reset_uses_del_not_shutdown_workers",
            ),
            merged=True,
        ),
        impact=Impact(
            "With persistent workers, a worker that dies while it is being stopped makes fit() or predict() fail at "
            "the end of a run that went well: later teardown hooks are not called, and the program's exit status "
            "says that it failed.",
            (
                "in _shutdown_workers_and_reset_iterator",
                "Please call `iter(combined_loader)` first.",
            ),
        ),
        equivalent_to="the same training in a loop without Lightning, where torch lets the error pass",
        note="The official fix is merged, but in no release. It deletes the iterator and counts on nobody else holding "
        "it; here the workers are stopped at once, as before, and a warning reports the error.",
        relied_on="Training whose workers end cleanly is as before. A script that takes the error at the end for a "
        "sign that a worker died gets a warning in its place, and the exit status of a run that succeeded.",
        relied_on_tests=("tests/patches/test_worker_shutdown_error.py::test_workers_that_end_well",),
    ),
)
