"""Which rank of which job this process is, as far as it can be known at the moment, without asking anybody."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any, Optional

from lightning_patches import _runtime

PORT_VARIABLE = "LIGHTNING_PATCHES_HANG_PORT"
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JSM_NAMESPACE_RANK")
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "JSM_NAMESPACE_SIZE")


@dataclass(frozen=True)
class Identity:
    """A rank, and where rank zero listens.

    Args:
        rank: ``None`` for one of several nodes whose launcher tells the local rank only.
        local_rank: rank on this node.
        node: number of the node.
        world_size: number of ranks.
        address: host name or address of rank zero's node.
        key: the same in all ranks of one job, and in no other job on these nodes.
    """

    rank: Optional[int]
    local_rank: int
    node: int
    world_size: int
    address: str
    key: str

    @property
    def ports(self) -> list[int]:
        """Where rank zero may listen, by preference; below the range that systems use for outgoing connections."""
        own = os.environ.get(PORT_VARIABLE, "")
        if own.isdigit():
            return [int(own)]
        digest = hashlib.sha256(self.key.encode()).digest()
        return [10000 + int.from_bytes(digest[i : i + 4], "big") % 20000 for i in (0, 4, 8, 12)]

    @property
    def on_loopback(self) -> bool:
        return self.address in ("localhost", "::1") or self.address.startswith("127.")


def find(frames: list[FrameType]) -> Optional[Identity]:
    """Who this process is.

    Args:
        frames: the main thread's stack, innermost first. It tells what the environment does not: the arguments of an
            ``init_process_group`` that is being waited in, and the index of a process that ``ddp_spawn`` started.

    Returns:
        ``None`` for a process that is not known to be one of several ranks.
    """
    spawned = _spawned(frames)
    if spawned is None and _runtime.is_child():
        return None  # a DataLoader worker inherits its rank's variables
    rank, size = _initialized() or _initializing(frames) or (None, None)
    local_rank, node = _number("LOCAL_RANK", "SLURM_LOCALID"), _number("GROUP_RANK", "NODE_RANK", "SLURM_NODEID") or 0
    slurm = False
    if spawned is not None:
        local_rank, count = spawned
        rank = local_rank if rank is None and node == 0 else rank
        size = size or count
    elif size is None:
        rank, size = _number(*_RANKS), _number(*_SIZES)
        if size is None or (rank is None and local_rank is None):
            rank, size = _number("SLURM_PROCID"), _number("SLURM_NTASKS")
            slurm = True
        elif rank is None and node == 0:
            rank = local_rank  # Lightning's own launcher tells no more
    if size is None or size < 2 or (rank is None and local_rank is None):
        return None
    slurm = slurm or ("SLURM_PROCID" in os.environ and "LOCAL_RANK" not in os.environ and "RANK" not in os.environ)
    key = _key(slurm)
    if not key:
        return None
    address = os.environ.get("MASTER_ADDR") or (_slurm_address() if slurm else None) or "127.0.0.1"
    return Identity(rank, local_rank if local_rank is not None else (rank or 0), node, size, address, key)


def main_group() -> Any:
    """torch's default process group, ``None`` as long as there is none."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    try:
        return module._get_default_group() if module is not None and module.is_initialized() else None
    except Exception:
        return None


def _initialized() -> Optional[tuple[int, int]]:
    group = main_group()
    return None if group is None else (int(group.rank()), int(group.size()))


def _initializing(frames: list[FrameType]) -> Optional[tuple[int, int]]:
    for frame in frames:
        if frame.f_code.co_name == "init_process_group" and "torch" in frame.f_code.co_filename:
            rank, size = frame.f_locals.get("rank"), frame.f_locals.get("world_size")
            if isinstance(rank, int) and isinstance(size, int) and rank >= 0 and size > 0:
                return rank, size
    return None


def _spawned(frames: list[FrameType]) -> Optional[tuple[int, Optional[int]]]:
    """Index and number of processes, if ``torch.multiprocessing`` started this one, as ``ddp_spawn`` does."""
    for frame in frames:
        if frame.f_code.co_name == "_wrap" and frame.f_code.co_filename.endswith("torch/multiprocessing/spawn.py"):
            index = frame.f_locals.get("i")
            strategy = getattr(getattr(frame.f_locals.get("fn"), "__self__", None), "_strategy", None)
            count = getattr(strategy, "num_processes", None)
            nodes = getattr(strategy, "num_nodes", getattr(strategy, "_num_nodes", 1))
            if isinstance(index, int):
                return index, count * nodes if isinstance(count, int) and isinstance(nodes, int) else None
    return None


def _number(*variables: str) -> Optional[int]:
    for variable in variables:
        value = os.environ.get(variable, "")
        if value.isdigit():
            return int(value)
    return None


def _key(slurm: bool) -> str:
    get = os.environ.get
    if slurm:  # Lightning sets MASTER_PORT late, and in the ranks that get there only
        return f"slurm {get('SLURM_JOB_ID')} {get('SLURM_STEP_ID')}"
    port = get("MASTER_PORT")
    if not port:
        return ""
    return f"{port} {get('TORCHELASTIC_RUN_ID', '')} {get('TORCHELASTIC_RESTART_COUNT', '')}"


def _slurm_address() -> Optional[str]:
    nodes = os.environ.get("SLURM_NODELIST") or os.environ.get("SLURM_JOB_NODELIST")
    for root in ("lightning.fabric", "lightning_fabric"):
        module = sys.modules.get(f"{root}.plugins.environments.slurm")
        if module is not None and nodes:
            try:
                return str(module.SLURMEnvironment.resolve_root_node_address(nodes))
            except Exception:
                return None
    return None
