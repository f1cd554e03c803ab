"""Warn when Lightning replaces what a DataLoader draws from."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import is_applied, observe, stored, warn, warning
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
            lost = _lost(source, stored(dataloader, "dataset"))
            if source is not sampler and source is not wrapped and lost:
                warn(
                    "sampler-replaced",
                    f"Lightning draws from {divides} instead of {name}, from which your DataLoader draws: {lost} "
                    f"ignored. {_REMEDY}{alone}",
                )
            elif source is wrapped and lost and _draws_without_seed(source):
                warn(
                    "sampler-without-seed",
                    f"Each rank draws another order from {name}, because there is no seed: in each epoch, some items "
                    "are missing and others are used twice. Call seed_everything() before fit, or set "
                    "LIGHTNING_PATCHES=default,exact-data.",
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


def _source_of(loader: Any) -> Any:
    batches = stored(loader, "batch_sampler")
    given = batches is not None and stored(loader, "batch_size") is None
    return stored(batches, "sampler") if given else stored(loader, "sampler")


def _lost(source: Any, dataset: Any) -> str:
    """Return what is ignored if Lightning draws from the dataset instead; "" if nothing is."""
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


def _draws_without_seed(source: Any) -> bool:
    """True if a sampler draws from torch's generator, which has a seed of its own in each process."""
    import torch

    is_torchs = type(source).__module__.startswith("torch.") and stored(source, "generator") is None
    is_seeded = "PL_GLOBAL_SEED" in os.environ or torch.initial_seed() < 2**32
    return is_torchs and not is_seeded and multiprocessing.parent_process() is None


_FUNCTION = "utilities.data:_dataloader_init_kwargs_resolve_sampler"

PATCH = warning(
    Target(f"fabric.{_FUNCTION}", _resolve_sampler),
    Target(f"pytorch.{_FUNCTION}", _resolve_sampler),
    Target("pytorch.trainer.connectors.data_connector:_resolve_overfit_batches", _resolve_overfit),
    fixes=(loader_sampler_kept,),
    after=("plain-batch-sampler", "predict-own-batch-sampler", "predict-batch-sampler-constructor"),
    added="0.3.0",
    when=" for each kind of loss",
)
