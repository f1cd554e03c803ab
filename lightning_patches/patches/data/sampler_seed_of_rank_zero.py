"""Under DDP, all ranks divide the same shuffled order if they have different seeds."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target


def _resolve_sampler(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _resolve_sampler(self: Any, dataloader: Any, *args: Any, **kwargs: Any) -> Any:
        sampler = original(self, dataloader, *args, **kwargs)
        if sampler is not dataloader.sampler and sampler.shuffle and sampler.num_replicas > 1:
            sampler.seed = self.trainer.strategy.broadcast(sampler.seed)
        return sampler

    return _resolve_sampler


_CONNECTORS = "pytorch.trainer.connectors.data_connector"
_STOCK = ("self.trainer.strategy.broadcast", "self.trainer.strategy.distributed_sampler_kwargs")

PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("order of data", "under DDP, if the ranks have different seeds"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(f"{_CONNECTORS}:DataConnector._resolve_sampler", _resolve_sampler, before="2.0.0", stock=_STOCK),
        Target(f"{_CONNECTORS}:_DataConnector._resolve_sampler", _resolve_sampler, since="2.0.0", stock=_STOCK),
    ),
    impact=Impact(
        "With seed_everything(seed + rank) under DDP, each rank takes its share of another shuffled order. In each "
        "epoch, some training items are used twice and others not at all.",
        (
            "items are missing from an epoch with seed_everything(seed + rank) under DDP",
            "different seed on each rank, DistributedSampler gives overlapping samples",
        ),
    ),
    note="All ranks use rank zero's seed for the order of the data. Other random numbers, such as augmentations, still "
    "have each rank's seed. Fabric is unchanged, since a program can set up a data loader on one rank only. Below "
    "2.0.3, distributed-sampler-without-seed is needed, too.",
)
