"""``pytorch/trainer/connectors/data_connector.py`` and ``fabric/fabric.py``: work that one rank does for all."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Iterator

from lightning_patches.distributions import module_name
from lightning_patches.patch import Impact, Patch, Target, Upstream


@contextlib.contextmanager
def _barrier_without_deadline() -> Iterator[Callable[[], None]]:
    """Gives a barrier that waits as long as the ranks live, and passes it when the block ends.

    The group of the training has a deadline, 30 minutes by default; the barrier is one of a group of its own, through
    gloo, which also notices when the process of a rank is gone.
    """
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        yield lambda: None
        return
    from datetime import timedelta

    group = dist.new_group(backend="gloo", timeout=timedelta(days=10000))

    def barrier() -> None:
        dist.monitored_barrier(group)

    try:
        yield barrier
    finally:
        barrier()
        dist.destroy_process_group(group)


def _prepare_data(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def prepare_data(self: Any) -> None:
        is_overridden = sys.modules[module_name(namespace, "pytorch.utilities.model_helpers")].is_overridden
        owners = (self.trainer.datamodule, self.trainer.lightning_module)
        if not any(owner is not None and is_overridden("prepare_data", owner) for owner in owners):
            return original(self)
        with _barrier_without_deadline():
            return original(self)

    return prepare_data


def _rank_zero_first(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    @contextlib.contextmanager
    def rank_zero_first(self: Any, local: bool = False) -> Iterator[None]:
        rank = self.local_rank if local else self.global_rank
        with _barrier_without_deadline() as barrier:
            if rank > 0:
                barrier()
            yield
            if rank == 0:
                barrier()

    return rank_zero_first


PATCHES = (
    Patch(
        name="prepare-data-without-deadline",
        title="prepare_data and rank_zero_first may take longer than the process group's timeout",
        group="hang",
        affected=(">=2.0.0,<2.3.0",),
        targets=(
            Target("pytorch.trainer.connectors.data_connector:_DataConnector.prepare_data", _prepare_data),
            Target("fabric.fabric:Fabric.rank_zero_first", _rank_zero_first, since="2.1.0"),
        ),
        upstream=Upstream(
            pull_requests=(19448,),
            commit="3c5a465cfc",
            fixed_in="2.3.0",
            tests=("tests/tests_fabric/utilities/test_distributed.py::test_infinite_barrier",),
        ),
        impact=Impact(
            "A download or preprocessing in prepare_data that takes longer than 30 minutes ends the other ranks with a "
            "timeout of the process group.",
            ("Timed out waiting", "Watchdog caught collective operation timeout", "prepare_data timeout"),
        ),
        default=False,
        note="Opt-in: the ranks wait through a gloo group, which needs host names that the nodes can reach each other "
        "by, and a rank that never comes back is waited for without end.",
    ),
)
