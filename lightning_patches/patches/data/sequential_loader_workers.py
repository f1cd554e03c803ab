"""In validation, test and predict, only one DataLoader has workers running at a time."""

from typing import Any, Callable

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream


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


PATCH = Patch(
    group="performance",
    changes_results=Effect("numbers", "random values in validation, test or predict with several loaders"),
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
        "With several DataLoaders for validation, test or prediction, the workers of all of them start at once "
        "and run until the last loader is done. With many loaders, the machine runs out of memory or shared "
        "memory.",
        ("DataLoader worker is killed by signal: Killed", "too many workers with several val_dataloaders"),
        consequences=(
            Consequence(
                ("Too many open files",), r"combined_loader\.py", "the workers of all DataLoaders are started at once"
            ),
        ),
    ),
    note="The workers of a DataLoader start when its turn comes, as from 2.0.3 on.",
)
