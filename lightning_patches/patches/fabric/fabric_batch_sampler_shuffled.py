"""Fabric shuffles the data of a batch sampler that shuffles, on several devices."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _get_distributed_sampler(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _get_distributed_sampler(dataloader: Any, **kwargs: Any) -> Any:
        from torch.utils.data import RandomSampler

        # A loader that was created with a batch sampler has no batch size, and a sampler that nothing uses.
        if dataloader.batch_size is None and isinstance(
            getattr(dataloader.batch_sampler, "sampler", None), RandomSampler
        ):
            kwargs.setdefault("shuffle", True)
        return original(dataloader, **kwargs)

    return _get_distributed_sampler


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("order of data", "on several devices, with a batch sampler that shuffles"),
    affected=(">=1.9.0,<=2.6.6",),
    targets=(Target("fabric.fabric:Fabric._get_distributed_sampler", _get_distributed_sampler),),
    upstream=Upstream(issues=(20326,)),
    impact=Impact(
        "With Fabric on several devices, a DataLoader whose batch sampler uses a RandomSampler is never shuffled: each "
        "epoch yields the items in order.",
        ("Fabric does not shuffle my batch sampler on several devices",),
    ),
    note="This is the official fix for the Trainer (2.5.0), as in batch-sampler-shuffled.",
)
