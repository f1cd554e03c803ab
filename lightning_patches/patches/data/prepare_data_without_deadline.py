"""prepare_data and rank_zero_first may take longer than the process group's timeout."""

import contextlib
from typing import Any, Callable, Iterator

from lightning_patches.engine.distributions import ROOT_PACKAGES, upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


@contextlib.contextmanager
def _barrier_without_deadline(otherwise: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Yield a barrier that waits as long as all ranks' processes exist, and call it again at the end of the block.

    The process group of the training has a timeout, 30 minutes by default. The barrier uses a separate gloo group,
    which also detects when the process of a rank is gone.

    Args:
        otherwise: the barrier to use without a process group: with one process, or XLA.
    """
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        yield otherwise
        otherwise()
        return
    from datetime import timedelta

    deadline = timedelta(days=10000)
    group = dist.new_group(backend="gloo", timeout=deadline)

    def barrier() -> None:
        dist.monitored_barrier(group, timeout=deadline)  # without a timeout it uses torch's default, not the group's

    try:
        yield barrier
    finally:
        barrier()
        dist.destroy_process_group(group)


def _prepare_data(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def prepare_data(self: Any) -> None:
        hooks = upstream_module(namespace, "pytorch.core.hooks")
        owners = (self.trainer.datamodule, self.trainer.lightning_module)
        found = [getattr(owner, "prepare_data", None) for owner in owners]
        if all(getattr(method, "__func__", method) in (None, hooks.DataHooks.prepare_data) for method in found):
            return original(self)
        _join_process_group(self.trainer)
        with _barrier_without_deadline(lambda: None):
            return original(self)

    return prepare_data


def _join_process_group(trainer: Any) -> None:
    """Create the process group before prepare_data(), as 2.2.0 and later do.

    Otherwise waiting for rank zero can time out. The strategy is set up again later. Lightning's strategies allow that,
    but a user's strategy may not. `Target.stock` is not used, because the rest of the patch also applies to a user's
    strategy.
    """
    import torch.distributed as dist

    set_up = type(trainer.strategy).setup_environment
    missing = trainer.world_size > 1 and dist.is_available() and not dist.is_initialized()
    if missing and set_up.__module__.partition(".")[0] in ROOT_PACKAGES:
        trainer.strategy.setup_environment()


@contextlib.contextmanager
def _one_rank_first(fabric: Any, local: bool) -> Iterator[None]:
    rank = fabric.local_rank if local else fabric.global_rank
    with _barrier_without_deadline(fabric.barrier) as barrier:
        if rank > 0:
            barrier()
        yield
        if rank == 0:
            barrier()


def _rank_zero_first(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def rank_zero_first(self: Any, local: bool = False) -> Any:
        return _one_rank_first(self, local)

    return rank_zero_first


PATCH = Patch(
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
        "If a download or preprocessing in prepare_data, or under Fabric's rank_zero_first, takes longer than "
        "the timeout of the process group (10 or 30 minutes), the other ranks fail.",
        (
            "Timed out waiting",
            "seconds waiting for clients",
            "Watchdog caught collective operation timeout",
            "NCCL timeout in prepare_data",
        ),
        error="[Rank ...] Watchdog caught collective operation timeout: WorkNCCL(...) ran for ... milliseconds before "
        "timing out.",
        frames=(" in prepare_data", "rank_zero_first", "_InfiniteBarrier"),
        would_tell="with LIGHTNING_PATCHES_HANG_TIMEOUT=300 which rank is missing, and its stack. It is "
        "this bug only if that rank was in prepare_data or in a rank_zero_first block",
    ),
    opt_in="users who download or prepare data for longer than the process group's timeout",
    signs=("prepare_data", "rank_zero_first"),
    note="Opt-in because the ranks wait in a gloo group, which needs host names that the nodes can resolve, "
    "and because the wait for a rank that never arrives has no limit. Before 2.2.0, prepare_data ran "
    "before the process group was created; with Lightning's strategies it now runs after that, as from "
    "2.2.0 on. If torch has no process group (XLA), rank_zero_first waits in Fabric's barrier; the "
    "official fix does not wait there.",
)
