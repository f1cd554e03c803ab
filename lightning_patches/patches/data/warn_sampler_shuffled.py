"""Warn when Lightning shuffles the order of a custom sampler."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Target
from lightning_patches.patches._warning import observe, stored, warn, warning
from lightning_patches.patches.data import sampler_order_kept
from lightning_patches.patches.data.sampler_order_kept import is_own


def _get_distributed_sampler(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def after(_: None, made: Any, dataloader: Any, *__: Any, **___: Any) -> None:
        divides = upstream_module(namespace, "fabric.utilities.distributed").DistributedSamplerWrapper
        sampler = stored(dataloader, "sampler")
        if isinstance(made, divides) and is_own(sampler) and made.shuffle and made.num_replicas > 1:
            warn(
                "sampler-shuffled",
                f"The samples that {type(sampler).__name__} chooses are shuffled, because Lightning divides them among "
                "the ranks. To keep its order, set LIGHTNING_PATCHES=default,sampler-order-kept, or use "
                "Trainer(use_distributed_sampler=False) and a sampler that divides them itself.",
            )

    return observe(original, after=after)


PATCH = warning(
    Target("pytorch.trainer.connectors.data_connector:_get_distributed_sampler", _get_distributed_sampler),
    fixes=(sampler_order_kept,),
    added="0.2.0",
    when=", even if the order of the sampler is random",
    note="warn-sampler-replaced warns if Lightning drops the sampler.",
)
