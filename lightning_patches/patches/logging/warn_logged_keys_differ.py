"""Warn when ranks log different names with sync_dist=True."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from typing import Any, Callable, Iterator

from lightning_patches import notices
from lightning_patches.engine.functions import home_of
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title
from lightning_patches.patches.distributed._ranks import are_several

_CONNECTOR = "pytorch.trainer.connectors.logger_connector"

_SAID = "lightning_patches/logged/said"

_rounds: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)
"""Counters of this process's comparisons. Ranks that run the same code have equal counts."""


def _metrics(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def metrics(self: Any, on_step: bool) -> Any:
        if not on_step and are_several():
            pending = [one for _, one in self.valid_items() if one.meta.on_epoch and one._computed is None]
            _compare("epoch", [_name(one) for one in pending if _is_synced(one, namespace)])
        return original(self, on_step)

    return metrics


def _on_epoch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_epoch_end(self: Any) -> None:
        if are_several():
            results = (self.trainer._results or {}).values()
            steps = [one for one in results if one.meta.on_step and one.is_tensor and not one.has_reset]
            _compare("step", [_name(one) for one in steps if _is_synced(one, namespace)])
        original(self)

    return on_epoch_end


def _name(metric: Any) -> str:
    index = metric.meta.dataloader_idx
    return str(metric.meta.name) if index is None else f"{metric.meta.name} of dataloader {index}"


def _is_synced(metric: Any, namespace: str) -> bool:
    """True if Lightning or torchmetrics reduces the metric across ranks."""
    if not metric.is_tensor:
        value = metric.value
        return bool(value._defaults and value._to_sync and value.process_group is None and value._computed is None)
    sync = metric.meta.sync
    if not sync.should or sync.rank_zero_only or sync.group is not None:
        return False
    home = home_of(getattr(sync.fn, "__func__", None))  # a custom function may not reduce the value across ranks
    return home.startswith(f"{namespace}.") and not home.endswith(".single_device")


def _compare(when: str, names: list[str]) -> None:
    """Compare the names with those of the first rank, through the process group's store, so that no rank waits."""
    import torch.distributed as dist

    if not names:
        return
    key, number = f"lightning_patches/logged/{when}/", next(_rounds[when])
    try:
        store = dist.distributed_c10d._get_default_store()
        first, others = json.loads(store.compare_set(f"{key}{number}", "", json.dumps([dist.get_rank(), names])))
        if dist.get_rank() == 0:
            store.delete_key(f"{key}{number - 2}")  # all ranks have read it
        if others == names or json.loads(store.compare_set(_SAID, "", str(dist.get_rank()))) != dist.get_rank():
            return  # equal, or another rank has warned
    except Exception:  # a backend without a store, or the store's rank is gone and the collectives will raise
        return
    notices.warn_once(
        "logged-keys-differ",
        f"With sync_dist=True, rank {dist.get_rank()} has logged ({', '.join(names)}), rank {first} "
        f"({', '.join(others)}). Lightning averages values at the same position, whatever their names. Log the same "
        "names in the same order in all ranks, or without sync_dist=True.",
        all_ranks=True,
    )


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.2.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_CONNECTOR}.result:_ResultCollection.metrics", _metrics),
        Target(f"{_CONNECTOR}.logger_connector:_LoggerConnector.on_epoch_end", _on_epoch_end),
    ),
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
    after=("progress-bar-without-wait",),
    note="This patch fixes nothing: it warns once. It compares the names of an epoch before Lightning "
    "synchronizes them, with one request to the process group's key-value store. It waits for no other "
    "rank and adds no collective. Values that are synchronized within a custom group, or by a strategy "
    "with a custom reduce, are not checked.",
)
