"""Warn when Lightning shuffles the order of a custom sampler."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Target
from lightning_patches.patches._warning import observe, stored, warn, warning
from lightning_patches.patches.data import sampler_order_kept
from lightning_patches.patches.data.sampler_order_kept import is_own


def _get_distributed_sampler(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def after(_: None, made: Any, dataloader: Any, *__: Any, **___: Any) -> None:
        own = _own(dataloader)
        if own is not None and made.shuffle and made.num_replicas > 1:
            # If Lightning takes the sampler for one of torch's, it drops the sampler, and sampler-order-kept can't keep
            # its order.
            divides = upstream_module(namespace, "fabric.utilities.distributed").DistributedSamplerWrapper
            opt_in = "set LIGHTNING_PATCHES=default,sampler-order-kept, or " if isinstance(made, divides) else ""
            warn(
                "sampler-shuffled",
                f"The samples that {type(own).__name__} chooses are shuffled, because Lightning divides them "
                f"among the ranks. To keep its order, {opt_in}use Trainer(use_distributed_sampler=False) and a sampler "
                "that divides them itself.",
            )

    return observe(original, after=after)


def _own(dataloader: Any) -> Any:
    """Return the custom sampler of the DataLoader or of its batch sampler, if there is one."""
    batches = stored(dataloader, "batch_sampler")
    inner = stored(batches, "sampler") if batches is not None else None
    return next((one for one in (stored(dataloader, "sampler"), inner) if one is not None and is_own(one)), None)


PATCH = warning(
    Target("pytorch.trainer.connectors.data_connector:_get_distributed_sampler", _get_distributed_sampler),
    fixes=(sampler_order_kept,),
    fixed_by=(),  # it does not fix all cases
    added="0.2.0",
    when=", even if the order of the sampler is random",
    note="It does not fix subclasses of torch's SequentialSampler or RandomSampler, and samplers in a batch sampler.",
)
