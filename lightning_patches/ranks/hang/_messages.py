"""The messages between ranks and hub: the fields of each kind, with their types and ranges.

A message can't select a process, signal or descriptor: a rank examines and ends only processes in the records of its
node (:mod:`~lightning_patches.ranks.hang._registry`). The field ``pid`` is only displayed.
"""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Dict, Optional

Message = Dict[str, Any]
Check = Callable[[Any], bool]

LONGEST_STACK = 60_000
LONGEST_ERROR = 6_000
LONGEST_CHILD = 8_000
MOST_CHILDREN = 8
MOST_COLLECTIVES = 32
MOST_FRAMES = 16
FINISHED, STOPPED, FAILED = "finished", "stopped", "failed"
"""Kinds of endings that a rank reports: its program ended, its watch was stopped, or an error ended it."""
_MOST_RANKS = 1 << 20


def text(most: int) -> Check:
    return lambda value: isinstance(value, str) and len(value) <= most


def number(least: int, most: int) -> Check:
    return lambda value: type(value) is int and least <= value <= most


def flag(value: Any) -> bool:
    return isinstance(value, bool)


def seconds(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and 0 <= value <= 1e9


def optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


def several(check: Check, most: int) -> Check:
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(check, value))


def one_of(*values: str) -> Check:
    return lambda value: isinstance(value, str) and value in values


def _numbers(value: Any) -> bool:
    """True if the value maps names of process groups to numbers of collectives."""
    return (
        isinstance(value, dict)
        and len(value) <= 64
        and all(map(text(64), value))
        and all(map(number(-1, 1 << 62), value.values()))
    )


def _form(fields: dict[str, Check]) -> Check:
    return lambda value: (
        isinstance(value, dict)
        and value.keys() == fields.keys()
        and all(check(value[name]) for name, check in fields.items())
    )


_COLLECTIVE = {"name": text(128), "group": text(64), "number": number(-1, 1 << 62), "sizes": text(256), "done": flag}
_rank = number(0, _MOST_RANKS)
_children = several(text(LONGEST_CHILD), MOST_CHILDREN)
TO_HUB: dict[str, dict[str, Check]] = {
    "hello": {
        "rank": optional(_rank),
        "local_rank": _rank,
        "node": _rank,
        "node_id": text(16),
        "host": text(256),
        "pid": number(0, 1 << 32),
    },
    "beat": {
        "place": text(512),
        "at_end": flag,
        "waits": seconds,
        "what": text(128),
        "numbers": _numbers,
        "pending": optional(_form(_COLLECTIVE)),
        "still": seconds,
        "idle": seconds,
        "works": flag,
        "unclear": flag,
    },
    "report": {
        "stack": text(LONGEST_STACK),
        "frames": several(text(512), MOST_FRAMES),
        "collective": text(1024),
        "recorder": several(_form(_COLLECTIVE), MOST_COLLECTIVES),
        "children": _children,
        "gpus": several(text(256), 64),
    },
    "probed": {
        "local_rank": _rank,
        "cause": text(1024),
        "hint": text(256),
        "stack": text(LONGEST_STACK),
        "works": flag,
        "unclear": flag,
        "gone": flag,
        "crashed": flag,
        "failed": flag,
        "for_memory": flag,
        "seen": flag,
        "children": _children,
    },
    "bye": {"kind": one_of(FINISHED, STOPPED, FAILED), "detail": text(LONGEST_ERROR)},
    "show": {},
}
TO_RANK: dict[str, dict[str, Check]] = {
    "welcome": {"host": text(256), "pid": number(0, 1 << 32)},
    "taken": {},
    "shown": {"part": text(LONGEST_STACK), "last": flag},
    "pulse": {},
    "report": {"gpus": flag, "children": flag},
    "probe": {"local_rank": _rank, "lives": flag},
    "abort": {"silent": several(_rank, 4096)},
}


def printable(text: str) -> str:
    """Return a text from outside, such as a file name, with line breaks and control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def parse(line: bytes, to_hub: bool) -> Optional[Message]:
    """Parse a message. Return ``None`` if it is not JSON, has an unknown kind, or missing, extra or invalid fields."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    kind = message.get("t")
    fields = (TO_HUB if to_hub else TO_RANK).get(kind) if isinstance(kind, str) else None
    if fields is None or not _form({"t": text(16), **fields})(message):
        return None
    return message
