"""Find out which rank of which job this process is, without communication."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any, Optional

from lightning_patches import notices
from lightning_patches.ranks import _node

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JSM_NAMESPACE_RANK")
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "JSM_NAMESPACE_SIZE")
_LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID")
_NODES = ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID")


@dataclass(frozen=True)
class Identity:
    """A rank, and the address of rank zero.

    Args:
        rank: the rank; ``None`` if there are several nodes, and the launcher provides only the local rank.
        local_rank: rank on this node.
        node: number of the node.
        world_size: number of ranks.
        address: host name or address of rank zero's node; "" if unknown.
        one_node: True if all ranks are on this node.
        sees_all: True if this process can see the processes of all ranks; False in one of several containers.
        key: an identifier of the job, the same in all its ranks. Not a secret.
    """

    rank: Optional[int]
    local_rank: int
    node: int
    world_size: int
    address: str
    one_node: bool
    key: str
    sees_all: bool = True

    @property
    def name(self) -> str:
        return f"rank {self.rank}" if self.rank is not None else f"local rank {self.local_rank} of node {self.node}"


@dataclass(frozen=True)
class _Place:
    """The values from one source, such as the launcher's variables."""

    rank: Optional[int] = None
    size: Optional[int] = None
    local_rank: Optional[int] = None


def find(frames: list[FrameType]) -> Optional[Identity]:
    """Return the identity of this process.

    Args:
        frames: the main thread's stack, innermost first. The environment lacks some values that the stack has: the
            arguments of a running ``init_process_group``, and the index of a process that ``ddp_spawn`` started.

    Returns:
        ``None`` if this process is not known to be one of several ranks.
    """
    spawned = _spawned(frames)
    if spawned is None and notices.is_child():
        return None  # a DataLoader worker inherits its rank's variables
    node = _number(*_NODES) or 0
    slurm = _is_slurm()
    group = _initialized() or _initializing(frames) or _Place()
    launcher = spawned or (_of_slurm() if slurm else _of_variables())
    rank, size = (group.rank, group.size) if group.size else (launcher.rank, launcher.size)
    local_rank = launcher.local_rank
    if rank is None and node == 0:
        rank = local_rank  # Lightning's launchers provide only the local rank
    if size is None or size < 2 or (rank is None and local_rank is None):
        return None
    key = _key(slurm)
    if not key:
        return None
    address = os.environ.get("MASTER_ADDR") or (_first_node() if slurm else "127.0.0.1")
    if local_rank is None:
        local_rank = rank or 0
    one_node = _is_one_node(size, address, slurm)
    return Identity(rank, local_rank, node, size, address, one_node, key, one_node and _sees_all(size))


def main_group() -> Any:
    """Return torch's default process group, or ``None`` before it exists."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    try:
        return module._get_default_group() if module is not None and module.is_initialized() else None
    except Exception:
        return None


def _initialized() -> Optional[_Place]:
    group = main_group()
    return None if group is None else _Place(int(group.rank()), int(group.size()))


def _initializing(frames: list[FrameType]) -> Optional[_Place]:
    for frame in frames:
        if frame.f_code.co_name == "init_process_group" and "torch" in frame.f_code.co_filename:
            rank, size = frame.f_locals.get("rank"), frame.f_locals.get("world_size")
            if isinstance(rank, int) and isinstance(size, int) and rank >= 0 and size > 0:
                return _Place(rank, size)
    return None


def _spawned(frames: list[FrameType]) -> Optional[_Place]:
    """Return the index and the number of processes if ``torch.multiprocessing`` (``ddp_spawn``) started this one."""
    for frame in frames:
        if frame.f_code.co_name == "_wrap" and frame.f_code.co_filename.endswith("torch/multiprocessing/spawn.py"):
            index = frame.f_locals.get("i")
            strategy = getattr(getattr(frame.f_locals.get("fn"), "__self__", None), "_strategy", None)
            count = getattr(strategy, "num_processes", None)
            nodes = getattr(strategy, "num_nodes", getattr(strategy, "_num_nodes", 1))
            if isinstance(index, int):
                size = count * nodes if isinstance(count, int) and isinstance(nodes, int) else None
                return _Place(None, size, index)
    return None


def _of_variables() -> _Place:
    return _Place(_number(*_RANKS), _number(*_SIZES), _number(*_LOCAL_RANKS))


def _of_slurm() -> _Place:
    return _Place(_number("SLURM_PROCID"), _number("SLURM_NTASKS"), _number(*_LOCAL_RANKS))


def _is_slurm() -> bool:
    """True if SLURM started the ranks directly, without another launcher."""
    known = {"SLURM_PROCID", "SLURM_NTASKS"} <= set(os.environ)
    return known and not {"RANK", "LOCAL_RANK"} & set(os.environ)


def _is_one_node(size: int, address: str, slurm: bool) -> bool:
    nodes = _number("SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES") if slurm else None
    if nodes is not None:
        return nodes == 1
    is_loopback = address in ("localhost", "::1") or address.startswith("127.")
    return is_loopback or _number("LOCAL_WORLD_SIZE") == size


def _sees_all(size: int) -> bool:
    """True if all ranks of this node share a PID namespace: this is no container, or one launcher started them all."""
    return not _node.is_container() or "RANK" not in os.environ or _number("LOCAL_WORLD_SIZE") == size


def _number(*variables: str) -> Optional[int]:
    for variable in variables:
        value = os.environ.get(variable, "")
        if value.isdecimal() and value.isascii():
            return int(value)
    return None


def _key(slurm: bool) -> str:
    get = os.environ.get
    if slurm:  # Lightning sets MASTER_PORT only in ranks that create a Trainer or Fabric, and late
        return f"slurm {get('SLURM_JOB_ID')} {get('SLURM_STEP_ID')}"
    port = get("MASTER_PORT")
    if not port:
        return ""
    return f"{port} {get('TORCHELASTIC_RUN_ID', '')} {get('TORCHELASTIC_RESTART_COUNT', '')}"


def _first_node() -> str:
    """Return the first name in SLURM's list, such as ``gpu[03-05,9],cpu1``: the node of rank zero."""
    names = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_NODELIST")
    names = names or os.environ.get("SLURM_JOB_NODELIST") or ""
    found = re.match(r"([^,\[\]\s]+)(?:\[(\d+)[^\]]*\]([^,\[\]\s]*))?", names)
    return "".join(part or "" for part in found.groups()) if found else ""
