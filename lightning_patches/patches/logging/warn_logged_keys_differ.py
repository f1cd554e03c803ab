"""Warn when ranks log different names with sync_dist=True."""

from __future__ import annotations

import itertools
import json
from typing import Any, Callable

from lightning_patches.engine.functions import home_of
from lightning_patches.patch import Impact, Target, Upstream
from lightning_patches.patches._warning import observe, stored, warn, warning
from lightning_patches.patches.distributed._ranks import are_several

_CONNECTOR = "pytorch.trainer.connectors.logger_connector.logger_connector:_LoggerConnector"
_KEY = "lightning_patches/logged/"

_rounds = itertools.count()
"""Counts this process's comparisons. Ranks that run the same code have equal counts."""


def _observing(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def before(self: Any) -> None:
        if are_several():
            metrics = (self.trainer._results or {}).values()
            names = [_name(one) for one in metrics if not one.has_reset and _is_synced(one, namespace)]
            if names:
                _compare(names)

    return observe(original, before=before)


def _name(metric: Any) -> str:
    index = metric.meta.dataloader_idx
    return str(metric.meta.name) if index is None else f"{metric.meta.name} of dataloader {index}"


def _is_synced(metric: Any, namespace: str) -> bool:
    """True if Lightning or torchmetrics reduces the metric across ranks."""
    if not metric.is_tensor:
        value = metric.value
        has_value = metric._computed is not None or stored(value, "_computed") is not None
        syncs = stored(value, "_defaults") and stored(value, "_to_sync") and stored(value, "process_group") is None
        return bool(metric.meta.on_epoch and syncs and not has_value)
    sync = metric.meta.sync
    if not sync.should or sync.rank_zero_only or sync.group is not None:
        return False
    home = home_of(getattr(sync.fn, "__func__", None))  # a custom function may not reduce the value across ranks
    return home.startswith(f"{namespace}.") and not home.endswith(".single_device")


def _compare(names: list[str]) -> None:
    """Compare the names with those of the first rank, through the process group's store, so that no rank waits.

    Raises:
        Exception: the backend has no store, or the store's rank is gone, and the collectives will raise, too.
    """
    import torch.distributed as dist

    number, rank, store = next(_rounds), dist.get_rank(), dist.distributed_c10d._get_default_store()
    first, others = json.loads(store.compare_set(f"{_KEY}{number}", "", json.dumps([rank, names])))
    if rank == 0:
        store.delete_key(f"{_KEY}{number - 2}")  # all ranks have read it
    if others == names or store.compare_set(f"{_KEY}said", "", str(rank)).decode() != str(rank):
        return  # equal, or another rank has warned
    warn(
        "logged-keys-differ",
        f"With sync_dist=True, rank {rank} has logged ({', '.join(names)}), rank {first} ({', '.join(others)}). "
        "Lightning averages values at the same position, whatever their names. Log the same names in the same order in "
        "all ranks, or without sync_dist=True.",
        all_ranks=True,
        stacklevel=5,
    )


PATCH = warning(
    Target(f"{_CONNECTOR}.epoch_end_reached", _observing),
    Target(f"{_CONNECTOR}.on_epoch_end", _observing),
    added="0.2.0",
    affected=(">=2.0.0,<=2.6.6",),
    upstream=Upstream(issues=(21409,)),
    impact=Impact(
        "If ranks log different names with sync_dist=True, or log them in another order, each rank gets the mean of "
        "different metrics, without a warning.",
        (
            "sync_dist mixes metrics of ranks that log different keys",
            "callback_metrics differ between ranks",
            "DDP gives metrics to the wrong keys where processes log different metric keys",
        ),
    ),
    after=("epoch-metrics-on-all-ranks",),
    note="It compares the names of an epoch before Lightning synchronizes them, with one request to the process "
    "group's key-value store. It waits for no other rank and adds no collective. Values that are synchronized within "
    "a custom group, or by a strategy with a custom reduce, are not checked.",
)
