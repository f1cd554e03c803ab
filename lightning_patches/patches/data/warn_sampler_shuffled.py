"""Warn when Lightning shuffles the order of a custom sampler."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title
from lightning_patches.patches.data.sampler_order_kept import is_own


def _get_distributed_sampler(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _get_distributed_sampler(dataloader: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(dataloader, *args, **kwargs)
        own = _own(dataloader)
        if own is not None and getattr(made, "shuffle", False) and made.num_replicas > 1:
            # If Lightning takes the sampler for one of torch's, it drops the sampler, and sampler-order-kept can't keep
            # its order.
            divides = upstream_module(namespace, "fabric.utilities.distributed").DistributedSamplerWrapper
            opt_in = "set LIGHTNING_PATCHES=default,sampler-order-kept, or " if isinstance(made, divides) else ""
            notices.warn_once(
                "sampler-shuffled",
                f"The samples that {type(own).__name__} chooses are shuffled, because Lightning divides them "
                f"among the ranks. To keep its order, {opt_in}use Trainer(use_distributed_sampler=False) and a sampler "
                "that divides them itself.",
            )
        return made

    return _get_distributed_sampler


def _own(dataloader: Any) -> Any:
    """Return the custom sampler of the DataLoader or of its batch sampler, if there is one."""
    batches = getattr(dataloader, "__dict__", {}).get("batch_sampler")
    inner = getattr(batches, "__dict__", {}).get("sampler")
    return next((one for one in (dataloader.sampler, inner) if one is not None and is_own(one)), None)


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.trainer.connectors.data_connector:_get_distributed_sampler", _get_distributed_sampler),),
    upstream=Upstream(issues=(21447,)),
    impact=Impact(
        "With several devices, training data comes in a shuffled order although the DataLoader has a custom sampler, "
        "for example for a curriculum.",
        ("custom sampler order is ignored under DDP", "DistributedSamplerWrapper shuffles my sampler"),
    ),
    added="0.2.0",
    after=("sampler-order-kept",),
    note="This patch fixes nothing: it warns once, even if the order of the sampler is random. The opt-in "
    "patch sampler-order-kept fixes the bug, but not for subclasses of torch's SequentialSampler or "
    "RandomSampler, and not for samplers within a batch sampler.",
)
