"""Warn when Lightning replaces what a DataLoader draws from."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import Notes, is_applied, observe, stored, warn, warning
from lightning_patches.patches.data import loader_sampler_kept

_KEPT = "loader-sampler-kept"
_REMEDY = "To keep it, set LIGHTNING_PATCHES=default,exact-data, or "
_DIVIDE = "use use_distributed_sampler=False, and divide the samples among the ranks yourself."


def _resolve_sampler(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def after(_: None, settings: Any, dataloader: Any, sampler: Any, *__: Any, **___: Any) -> None:
        source, replicas = _source_of(dataloader), stored(sampler, "num_replicas", 1)
        name, divides = type(source).__name__, type(sampler).__name__
        alone = "pass the sampler itself to the DataLoader." if replicas == 1 else _DIVIDE
        wrapped = stored(stored(sampler, "dataset"), "_sampler") if replicas > 1 else None
        if not is_applied(_KEPT, namespace) and source is not None:
            _INSERTED.add(sampler, True)
            lost = _lost(source, stored(dataloader, "dataset"))
            if source is not sampler and source is not wrapped and lost:
                warn(
                    "sampler-replaced",
                    f"Lightning draws from {divides} instead of {name}, from which your DataLoader draws: {lost} "
                    f"ignored. {_REMEDY}{alone}",
                )
            elif source is wrapped and lost and _draws_alone(source, sampler.seed):
                warn(
                    "sampler-without-seed",
                    f"Each rank draws another order from {name}, because the ranks have no common seed: in each epoch, "
                    "some items are missing and others are used twice. Call seed_everything() with one seed before "
                    "fit, or set LIGHTNING_PATCHES=default,exact-data.",
                    all_ranks=sampler.rank == 1 and "PL_GLOBAL_SEED" in os.environ,
                )
            elif source is wrapped and sampler.shuffle and not _is_torchs(source):
                warn(
                    "sampler-shuffled",
                    f"The samples that {name} chooses are shuffled, because Lightning divides them among the ranks. "
                    f"{_REMEDY}{_DIVIDE}",
                )
        lost_size = stored(dataloader, "batch_size") is None and settings["batch_sampler"] is None
        if lost_size and stored(dataloader, "batch_sampler") is not None:
            warn(
                "batch-sampler-replaced",
                "Lightning has replaced the BatchSampler of a DataLoader, and the batch size is ignored. "
                "Set LIGHTNING_PATCHES=default,exact-data, or pass sampler, batch_size and drop_last to the loader.",
            )

    return observe(original, after=after)


def _resolve_overfit(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def after(_: None, __: None, combined_loader: Any, *___: Any) -> None:
        from torch.utils.data import RandomSampler, SubsetRandomSampler, WeightedRandomSampler

        for loader in combined_loader.flattened:
            source = _source_of(loader)
            if type(source) in (RandomSampler, SubsetRandomSampler, WeightedRandomSampler):
                warn(
                    "overfit-shuffled",
                    "overfit_batches trains on other batches in each epoch, because the batch sampler shuffles. "
                    "Set LIGHTNING_PATCHES=default,exact-data, or use a batch sampler that does not shuffle.",
                )

    return observe(original, after=after)


def _select_data_fetcher(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def before(trainer: Any, stage: Any) -> None:
        from torch.utils.data import DistributedSampler

        loaders = stored(trainer.fit_loop, "_combined_loader")
        if stage == "train" and stored(loaders, "_mode") != "sequential":
            sources = [one for one in map(_source_of, stored(loaders, "_flattened")) if _INSERTED.find(one)]
            shuffled = [one for one in sources if type(one) is DistributedSampler and one.shuffle]
            orders = [(one.seed, _length(one.dataset) or id(one.dataset)) for one in shuffled]
            if len(set(orders)) < len(orders):
                warn(
                    "loaders-shuffled-alike",
                    "Several training loaders have the same permutation, because Lightning shuffles them with one "
                    "seed: item i of one always meets item i of the other. Set LIGHTNING_PATCHES=default,exact-data, "
                    f"or {_DIVIDE}",
                )

    return observe(original, before)


def _source_of(loader: Any) -> Any:
    batches = stored(loader, "batch_sampler")
    given = batches is not None and stored(loader, "batch_size") is None
    return stored(batches, "sampler") if given else stored(loader, "sampler")


def _lost(source: Any, dataset: Any) -> str:
    """Name the options that Lightning ignores when it draws from the dataset; "" if there are none."""
    from torch.utils.data import (
        DistributedSampler,
        RandomSampler,
        SequentialSampler,
        SubsetRandomSampler,
        WeightedRandomSampler,
    )

    kind = type(source)
    if kind in (RandomSampler, SequentialSampler):
        of, number = stored(source, "data_source"), stored(source, "_num_samples")
        if stored(source, "replacement", False):
            return "its replacement is"
        if number is not None and number != _length(dataset):
            return "its num_samples is"
        differs = of is not dataset and None not in (_length(of), _length(dataset)) and _length(of) != _length(dataset)
        return "its data source is" if differs else ""
    if isinstance(source, DistributedSampler):
        return ""
    known = {WeightedRandomSampler: "its weights are", SubsetRandomSampler: "its subset is"}
    return known.get(kind, "the items that it chooses and their order are")


def _length(data: Any) -> Any:
    """Return the length of an object of Python or torch, which calls no code of the program."""
    return len(data) if type(data).__module__.partition(".")[0] in ("builtins", "torch") else None


def _is_torchs(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] == "torch"


def _draws_alone(source: Any, seed: int) -> bool:
    """True if a sampler draws from torch's generator, and this process has another seed than rank zero, or none."""
    import torch

    own, current = os.environ.get("PL_GLOBAL_SEED"), torch.initial_seed()
    is_global = _is_torchs(source) and stored(source, "generator") is None
    if not is_global or multiprocessing.parent_process() is not None:
        return False
    return current >= 2**32 if own is None else str(current) == own != str(seed)


_INSERTED = Notes()
_FUNCTION = "utilities.data:_dataloader_init_kwargs_resolve_sampler"

PATCH = warning(
    Target(f"fabric.{_FUNCTION}", _resolve_sampler),
    Target(f"pytorch.{_FUNCTION}", _resolve_sampler),
    Target("pytorch.trainer.connectors.data_connector:_resolve_overfit_batches", _resolve_overfit, since="2.0.0"),
    Target("pytorch.loops.utilities:_select_data_fetcher", _select_data_fetcher, since="2.1.0"),
    fixes=(loader_sampler_kept,),
    after=("predict-own-batch-sampler", "predict-batch-sampler-constructor"),
    added="0.3.0",
    when=" for each kind of loss",
)
