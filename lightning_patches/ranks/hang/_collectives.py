"""The collectives of this rank, from torch's sequence numbers and flight recorder."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any, Optional

from lightning_patches.ranks.hang._identity import main_group
from lightning_patches.ranks.hang._messages import MOST_COLLECTIVES


@dataclass(frozen=True)
class Collective:
    """A collective of this rank, from torch's flight recorder.

    Args:
        name: ``"all_reduce"``.
        group: name of the process group.
        number: its sequence number in that group.
        sizes: shapes of its inputs.
        done: True if it has completed.
    """

    name: str
    group: str
    number: int
    sizes: str
    done: bool

    def __str__(self) -> str:
        state = "completed or handed over" if self.done else "not completed"
        group = "the default group" if self.group in ("", "0") else f"group {self.group}"
        return f"{self.name} number {self.number} of {group}, input sizes {self.sizes}, {state}"


def numbers() -> dict[str, int]:
    """Return the number of collectives that this rank has started, by process group."""
    if main_group() is None:
        return {}
    found = {}
    world: Any = getattr(sys.modules["torch.distributed.distributed_c10d"], "_world", None)
    names = getattr(world, "pg_names", None) or {}
    for group in list(getattr(world, "pg_map", None) or [main_group()])[:64]:
        try:
            found[str(names.get(group, ""))[:64]] = int(group._get_sequence_number_for_group())
        except Exception:
            continue  # this backend has no sequence numbers
    return found


def last() -> Optional[Collective]:
    """Return the first incomplete collective, or else the last one; ``None`` if none is recorded."""
    entries = _all()
    for entry in entries:
        if not entry.done:
            return entry
    return entries[-1] if entries else None


def recorded() -> list[Collective]:
    """Return the last collectives of torch's flight recorder, oldest first."""
    return _all()[-MOST_COLLECTIVES:]


def _all() -> list[Collective]:
    """Return all collectives of torch's flight recorder, oldest first."""
    module = sys.modules.get("torch._C._distributed_c10d")
    entries: list[Collective] = []
    for name in ("_dump_nccl_trace_json", "_dump_fr_trace_json"):  # torch 2.5 and later
        function = getattr(module, name, None)
        try:
            found = json.loads(function()) if function is not None else {}
            entries += [_parsed(entry) for entry in found.get("entries", [])]
        except Exception:
            continue
    return entries


def _parsed(entry: dict[str, Any]) -> Collective:
    group = entry.get("process_group", "")
    if isinstance(group, (list, tuple)):
        group = group[0] if group else ""
    number = entry.get("collective_seq_id", entry.get("seq_id"))
    return Collective(
        name=str(entry.get("profiling_name", "")).rpartition(":")[2][:128],
        group=str(group)[:64],
        number=number if isinstance(number, int) else -1,
        sizes=str(entry.get("input_sizes"))[:256],
        done=bool(entry.get("retired")) or entry.get("state") == "completed",
    )
