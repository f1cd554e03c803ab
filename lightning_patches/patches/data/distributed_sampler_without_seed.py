"""Under DDP, all ranks use the same shuffled order even without a global seed."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_CONNECTORS = "pytorch.trainer.connectors.data_connector"


def _distributed_sampler(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _get_distributed_sampler(
        dataloader: Any, shuffle: bool, overfit_batches: Any, mode: Any = None, **kwargs: Any
    ) -> Any:
        from torch.utils.data import DistributedSampler, RandomSampler

        sampler = original(dataloader, shuffle, overfit_batches, mode=mode, **kwargs)
        shards = upstream_module(namespace, _CONNECTORS).DistributedSamplerWrapper
        if not isinstance(sampler, shards):
            return sampler
        # Each rank would take its share of an order that it draws itself. DistributedSampler draws the same order on
        # all ranks, because all use the same seed.
        drawn = dataloader.sampler
        if type(drawn) is not RandomSampler or drawn.replacement or drawn.generator:
            return sampler
        if drawn.num_samples != len(dataloader.dataset):
            return sampler
        taken_over = ("num_replicas", "rank", "shuffle", "seed", "drop_last")
        return DistributedSampler(dataloader.dataset, **{name: getattr(sampler, name) for name in taken_over})

    return _get_distributed_sampler


PATCH = Patch(
    group="correctness",
    changes_results=Effect("order of data", "under DDP without a seed"),
    affected=(">=1.8.0,<2.0.3",),
    targets=(
        Target(f"{_CONNECTORS}:_get_distributed_sampler", _distributed_sampler, since="2.0.0"),
        Target(f"{_CONNECTORS}:DataConnector._get_distributed_sampler", _distributed_sampler, before="2.0.0"),
    ),
    upstream=Upstream(
        pull_requests=(17713,),
        commit="53815e6635",
        fixed_in="2.0.3",
        tests=("tests/tests_pytorch/trainer/test_dataloaders.py::test_distributed_sampler_without_global_seed",),
    ),
    impact=Impact(
        "With a DataLoader(shuffle=True) under DDP and without seed_everything(), each rank shuffles "
        "independently and takes its share of its shuffled order. Some training items are used twice in an "
        "epoch, others not at all.",
        ("DistributedSampler ranks see the same samples", "items are missing from an epoch under DDP"),
    ),
    note="Ranks that the script gives the same seed also get the order of later releases, which is a different "
    "random order. A RandomSampler with a generator, with replacement or with num_samples is unchanged; "
    "later releases replace it and ignore these options.",
)
