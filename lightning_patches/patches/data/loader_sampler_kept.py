"""Lightning keeps the sampler and the batch size of a DataLoader, or of its batch sampler.

Each rank gets its share of one order, which all ranks draw alike.
"""

from __future__ import annotations

import os
import random
import sys
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def source_of(loader: Any) -> Any:
    """Return the sampler that a DataLoader draws from; ``None`` if a batch sampler has no sampler."""
    # A loader that was created with a batch sampler has no batch size, and a sampler that nothing uses.
    given = loader.batch_size is None and loader.batch_sampler is not None
    return getattr(loader.batch_sampler, "sampler", None) if given else loader.sampler


def is_plain(sampler: Any, dataset: Any) -> bool:
    """True if a sampler yields each item once, in order or shuffled: then Lightning's sampler does the same."""
    from torch.utils.data import RandomSampler, SequentialSampler

    if type(sampler) is SequentialSampler:
        return len(sampler) == len(dataset)
    is_random = type(sampler) is RandomSampler and not sampler.replacement
    return is_random and len(sampler) == len(sampler.data_source) == len(dataset)


class OneDraw:
    """The order of a sampler, drawn with the same random numbers on all ranks."""

    def __init__(self, sampler: Any) -> None:
        self.sampler, self.seed, self.epoch = sampler, int(os.environ.get("PL_GLOBAL_SEED", 0)), 0
        self.of: Optional[Any] = None  # the DistributedSampler that divides it

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[Any]:
        divides = self if self.of is None else self.of
        with _seeded(divides.seed + divides.epoch):
            return iter(list(self.sampler))

    def set_epoch(self, epoch: int) -> None:
        if callable(getattr(self.sampler, "set_epoch", None)):
            self.sampler.set_epoch(epoch)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the random numbers of torch, Python and NumPy, and restore their state."""
    import torch

    numpy, state = sys.modules.get("numpy"), random.getstate()
    numpys = numpy and numpy.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        if numpy:
            numpy.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(state)
            if numpy:
                numpy.random.set_state(numpys)


_INSERTED: weakref.WeakSet[Any] = weakref.WeakSet()
"""The samplers that divide the items of a loader among the ranks, and have the same seed for all loaders."""


def _resolve_sampler(original: Callable[..., dict[str, Any]], namespace: str) -> Callable[..., dict[str, Any]]:
    def _dataloader_init_kwargs_resolve_sampler(dataloader: Any, sampler: Any, *args: Any, **kwargs: Any) -> Any:
        from torch.utils.data import BatchSampler, DistributedSampler

        kept, batches = _kept(dataloader, sampler, namespace), dataloader.batch_sampler
        if isinstance(kept, DistributedSampler):
            _INSERTED.add(kept)
        settings = original(dataloader, kept, *args, **kwargs)
        if settings["batch_sampler"] is None and batches is not None and dataloader.batch_size is None:
            # torch's DataLoader requires these values with a batch sampler.
            settings.update(sampler=None, batch_size=1, drop_last=False)
            settings["batch_sampler"] = BatchSampler(kept, batches.batch_size, batches.drop_last)
        return settings

    return _dataloader_init_kwargs_resolve_sampler


def _kept(loader: Any, sampler: Any, namespace: str) -> Any:
    """Return a sampler that draws from the program's sampler, in place of Lightning's."""
    from torch.utils.data import DistributedSampler, SequentialSampler

    source = source_of(loader)
    if source is None or sampler is loader.sampler:  # predict on one device
        return sampler if source is None else source
    if is_plain(source, loader.dataset) or not hasattr(source, "__len__"):
        return sampler
    drawn = OneDraw(source)
    if type(sampler) is SequentialSampler:  # overfit_batches: the same batches in each epoch
        return list(drawn)
    if isinstance(source, DistributedSampler) or not isinstance(sampler, DistributedSampler):
        return source
    wrapper = upstream_module(namespace, "fabric.utilities.distributed").DistributedSamplerWrapper
    divides = wrapper if type(sampler) is DistributedSampler else type(sampler)  # predict has another wrapper
    drawn.of = divides(drawn, num_replicas=sampler.num_replicas, rank=sampler.rank, shuffle=False, seed=sampler.seed)
    return drawn.of


def _resolve_overfit(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _resolve_overfit_batches(combined_loader: Any, mode: Any) -> None:
        from torch.utils.data import DataLoader, SequentialSampler

        def fixed(loader: Any) -> Any:
            is_fixed = not isinstance(loader, DataLoader) or isinstance(source_of(loader), kinds)
            try:
                return loader if is_fixed else update(loader, SequentialSampler(loader.dataset), mode=mode)
            except Exception as error:
                if not isinstance(error.__cause__ or error, TypeError):  # below 2.1.0, another error from it
                    raise
                return loader  # Lightning can't copy a batch sampler whose constructor takes other arguments

        kinds = (SequentialSampler, list, type(None))
        original(combined_loader, mode)
        update = upstream_module(namespace, "pytorch.utilities.data")._update_dataloader
        combined_loader.flattened = [fixed(loader) for loader in combined_loader.flattened]

    return _resolve_overfit_batches


def _select_data_fetcher(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _select_data_fetcher(trainer: Any, stage: Any) -> Any:
        from torch.utils.data import DataLoader

        if stage == "train":
            for index, loader in enumerate(trainer.fit_loop._combined_loader.flattened):
                sampler = source_of(loader) if isinstance(loader, DataLoader) else None
                if sampler is not None and sampler in _INSERTED:
                    _INSERTED.discard(sampler)
                    sampler.seed += index * 1_000_003  # so that loaders don't have the same permutation
        return original(trainer, stage)

    return _select_data_fetcher


_FUNCTION = "utilities.data:_dataloader_init_kwargs_resolve_sampler"

PATCH = Patch(
    group="correctness",
    changes_results=Effect("order of data", "with a sampler that Lightning replaces, and with several loaders"),
    affected=(">=1.9.0,<=2.6.6",),
    targets=(
        Target(f"fabric.{_FUNCTION}", _resolve_sampler),
        Target(f"pytorch.{_FUNCTION}", _resolve_sampler),
        Target("pytorch.trainer.connectors.data_connector:_resolve_overfit_batches", _resolve_overfit, since="2.0.0"),
        Target("pytorch.loops.utilities:_select_data_fetcher", _select_data_fetcher, since="2.1.0"),
    ),
    upstream=Upstream(issues=(3455, 15899, 21282, 21447)),
    impact=Impact(
        "Lightning replaces what a DataLoader draws from. On several devices, weights, subsets, num_samples and "
        "replacement of samplers are ignored, training data comes in another order than that of a custom sampler, "
        "each rank divides another random order, several shuffled loaders have the same permutation, and torch's "
        "BatchSampler loses its batch size: a loader from train_dataloader trains on batches of one item, and any "
        "other loader fails at its first batch. predict with a batch sampler predicts other items, and "
        "overfit_batches trains on items that the sampler leaves out.",
        (
            "stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
            "too few items in a batch, batch size 1 under DDP with a batch_sampler",
            "order of my sampler is lost under DDP",
            "curriculum sampler is shuffled with several GPUs",
            "WeightedRandomSampler in a batch sampler is ignored under DDP",
            "SubsetRandomSampler is ignored under DDP, train and validation split overlap",
            "RandomSampler with num_samples or replacement is ignored under DDP",
            "items are missing from an epoch with SubsetRandomSampler under DDP",
            "two shuffled dataloaders yield the same permutation under DDP, unpaired data becomes paired",
            "predict ignores the sampler of my batch sampler",
            "overfit_batches replaces my custom sampler",
            "overfit_batches does not train on the same batches with a batch sampler that shuffles",
        ),
        error="TypeError: stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
        would_tell="the items and the length of a batch in `training_step`. It is this bug if they are not those of "
        "the DataLoader's sampler or batch sampler",
    ),
    opt_in="users who train on several devices, predict or overfit with a sampler or batch sampler that is not just "
    "shuffled or sequential",
    signs=("BatchSampler",),
    after=(
        "distributed-sampler-without-seed",
        "predict-own-batch-sampler",
        "predict-batch-sampler-constructor",
        "sampler-epoch-on-resume",
    ),
    note="Opt-in because runs that end well train on other items. The ranks take samples in turn from one order, which "
    "is drawn with the seed of seed_everything, or 0, and the epoch. Samplers without a length are unchanged. Two "
    "loaders get different permutations with the Trainer only. On 1.9, a batch sampler under DDP has one order in all "
    "epochs, and overfit_batches with a batch sampler that shuffles is unchanged.",
)
