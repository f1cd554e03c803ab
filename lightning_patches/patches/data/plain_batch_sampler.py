"""A DataLoader with torch's BatchSampler keeps its batch size on several devices.

A DataLoader that is created with a batch sampler has no batch size, and a default sampler that nothing uses. Lightning
reads both.
"""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _resolve_sampler(original: Callable[..., dict[str, Any]], namespace: str) -> Callable[..., dict[str, Any]]:
    def _dataloader_init_kwargs_resolve_sampler(dataloader: Any, sampler: Any, *args: Any, **kwargs: Any) -> Any:
        settings = original(dataloader, sampler, *args, **kwargs)
        batch_sampler = dataloader.batch_sampler
        if settings["batch_sampler"] is not None or batch_sampler is None or dataloader.batch_size is not None:
            return settings
        batch_sampler = _with_sampler(batch_sampler, dataloader.sampler, sampler, namespace)
        # torch's DataLoader requires these values with a batch sampler.
        return {**settings, "sampler": None, "batch_sampler": batch_sampler, "batch_size": 1, "drop_last": False}

    return _dataloader_init_kwargs_resolve_sampler


def _with_sampler(batch_sampler: Any, unused: Any, sampler: Any, namespace: str) -> Any:
    """Return a copy of the batch sampler that draws from ``sampler``, or from this rank's share of its own sampler.

    Args:
        batch_sampler: a plain ``torch.utils.data.BatchSampler``.
        unused: the loader's sampler.
        sampler: the sampler that Lightning inserts instead. namespace: the root package.
    """
    from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler

    own = batch_sampler.sampler
    if sampler is unused or isinstance(own, DistributedSampler):
        return batch_sampler
    to_share = hasattr(own, "__len__") and not isinstance(own, (RandomSampler, SequentialSampler))
    if to_share and type(sampler) is DistributedSampler:
        wrapper = upstream_module(namespace, "fabric.utilities.distributed")
        sampler = wrapper.DistributedSamplerWrapper(
            own,
            num_replicas=sampler.num_replicas,
            rank=sampler.rank,
            shuffle=sampler.shuffle,
            seed=sampler.seed,
            drop_last=sampler.drop_last,
        )
    return BatchSampler(sampler, batch_sampler.batch_size, batch_sampler.drop_last)


_FUNCTION = "utilities.data:_dataloader_init_kwargs_resolve_sampler"


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "the batch size under DDP"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target(f"fabric.{_FUNCTION}", _resolve_sampler), Target(f"pytorch.{_FUNCTION}", _resolve_sampler)),
    upstream=Upstream(issues=(3455,)),
    impact=Impact(
        "With DataLoader(batch_sampler=BatchSampler(...)) under DDP, the batch size is lost: a loader from "
        "train_dataloader trains on batches of one item, and any other loader fails at its first batch.",
        (
            "stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
            "too few items in a batch, batch size 1 under DDP with a batch_sampler",
        ),
        error="TypeError: stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
        would_tell="the length of a batch in `training_step`. It is this bug if a batch has one item, and the "
        "DataLoader was created with torch's `batch_sampler=BatchSampler(...)`",
    ),
    opt_in="users who pass torch's BatchSampler to a DataLoader and train on several devices",
    signs=("BatchSampler",),
    note="Opt-in because it changes the batch size of runs that work. Upstream closed the report as won't fix, "
    "so no release has a fix. Subclasses of BatchSampler are unchanged, because Lightning supports them. "
    "If the BatchSampler's sampler is neither sequential nor random, such as a WeightedRandomSampler, it "
    "is divided among the ranks. Without the patch, pass sampler, batch_size and drop_last to the "
    "DataLoader.",
    around=("predict-own-batch-sampler", "predict-batch-sampler-constructor"),
)
