"""With several devices, training data keeps the order of a custom sampler."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def is_own(sampler: Any) -> bool:
    """True if the sampler's class is not from torch."""
    return type(sampler).__module__.partition(".")[0] != "torch"


def _get_distributed_sampler(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _get_distributed_sampler(dataloader: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(dataloader, *args, **kwargs)
        divides = upstream_module(namespace, "fabric.utilities.distributed").DistributedSamplerWrapper
        if type(made) is divides and is_own(dataloader.sampler):
            made.shuffle = False
        return made

    return _get_distributed_sampler


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("order of data", "with several devices and a custom sampler"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.trainer.connectors.data_connector:_get_distributed_sampler", _get_distributed_sampler),),
    upstream=Upstream(issues=(21447,)),
    impact=Impact(
        "With several devices, training data comes in a shuffled order although the DataLoader has a custom sampler, "
        "for example for a curriculum.",
        ("order of my sampler is lost under DDP", "curriculum sampler is shuffled with several GPUs"),
    ),
    opt_in="users who train on several devices with a custom sampler whose order matters",
    after=("distributed-sampler-without-seed",),
    note="Opt-in because another order gives other results. The ranks take samples in turn: rank 0 of 2 gets "
    "the first sample, the third and so on, so that all ranks together follow the order of the sampler. "
    "The sampler must give all ranks the same order, as without this patch: a sampler that draws at "
    "random needs a seed. torch's samplers are unchanged, and so are their subclasses from 2.0.3 on. "
    "Samplers within a batch sampler are unchanged, because Lightning does not shuffle them. Without the "
    "patch, set use_distributed_sampler=False and divide the samples among the ranks in the sampler.",
)
