"""Under DDP, all ranks divide the same shuffled order if they have different seeds."""

import os
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.loops._way_out import Notes

_seeds = Notes()
"""By Trainer: the seed of this rank and that of rank zero when the run began."""


def _agree(trainer: Any) -> None:
    """Broadcast the seed. All ranks have just met at a barrier, and may create different numbers of loaders later."""
    if trainer.world_size > 1:
        seed = os.environ.get("PL_GLOBAL_SEED", "0")
        _seeds.add(trainer, (seed, trainer.strategy.broadcast(seed)))


def _setup_hook(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _call_setup_hook(trainer: Any) -> None:
        original(trainer)
        _agree(trainer)

    return _call_setup_hook


def _setup_method(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _call_setup_hook(self: Any) -> None:
        original(self)
        _agree(self)

    return _call_setup_hook


def _resolve_sampler(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _resolve_sampler(self: Any, dataloader: Any, *args: Any, **kwargs: Any) -> Any:
        sampler = original(self, dataloader, *args, **kwargs)
        seed, first = _seeds.find(self.trainer, ("", ""))
        if seed != first and sampler is not dataloader.sampler and str(getattr(sampler, "seed", "")) == seed:
            sampler.seed = int(first)
        return sampler

    return _resolve_sampler


_CONNECTORS = "pytorch.trainer.connectors.data_connector"

PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("order of data", "under DDP, if the ranks have different seeds"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.trainer.trainer:Trainer._call_setup_hook",
            _setup_method,
            before="2.0.0",
            stock=("self.strategy.broadcast",),
        ),
        Target(
            "pytorch.trainer.call:_call_setup_hook", _setup_hook, since="2.0.0", stock=("trainer.strategy.broadcast",)
        ),
        Target(f"{_CONNECTORS}:DataConnector._resolve_sampler", _resolve_sampler, before="2.0.0"),
        Target(f"{_CONNECTORS}:_DataConnector._resolve_sampler", _resolve_sampler, since="2.0.0"),
    ),
    impact=Impact(
        "With seed_everything(seed + rank) under DDP, each rank takes its share of another shuffled order. In each "
        "epoch, some training items are used twice and others not at all.",
        (
            "items are missing from an epoch with seed_everything(seed + rank) under DDP",
            "different seed on each rank, DistributedSampler gives overlapping samples",
        ),
    ),
    after=("logger-without-experiment",),
    note="All ranks use rank zero's seed for the order of the data. Other random numbers, such as augmentations, still "
    "have each rank's seed. Fabric is unchanged, since a program can set up a data loader on one rank only. Below "
    "2.0.3, distributed-sampler-without-seed is needed, too.",
)
