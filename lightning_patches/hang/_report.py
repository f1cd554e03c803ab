"""The report as text."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from typing import Any, Optional, Sequence

STATUS = 124
WAITS, HELD_BACK, ABORTS = "waits", "held back", "aborts"
_MOST_STACKS = 8
_MOST_LINES = 90


@dataclass(frozen=True)
class Point:
    """Where ranks wait: the call, its number, for how long, and how many ranks there are."""

    what: str
    number: int
    seconds: float
    world: int


@dataclass(frozen=True)
class Arrival:
    """A rank that is there."""

    name: str
    beat: dict[str, Any]
    answer: dict[str, Any]


@dataclass(frozen=True)
class Missing:
    """A rank that others wait for.

    Args:
        name: with host and pid.
        text: what it does instead.
        detail: its stack, or the error it ended with.
        collective: its last collective, by the flight recorder.
        moves: its stack changes.
        kill: host, pid and start time of processes that have to be ended from outside if the job is.
    """

    name: str
    text: str
    detail: str = ""
    collective: str = ""
    moves: bool = False
    kill: Sequence[tuple[str, int, Optional[int]]] = ()


def call(what: str, number: int) -> str:
    """``"barrier, collective number 3"``"""
    return f"{what}, collective number {number}" if number >= 0 else f"{what} (there is no process group yet)"


def render(point: Point, here: list[Arrival], missing: list[Missing], gpus: list[str], after: str) -> str:
    """The report of all ranks.

    Args:
        point: where ranks wait.
        here: ranks that have arrived there.
        missing: all others.
        gpus: a line for each GPU.
        after: what comes next, one of the constants of this module.
    """
    lines = [
        f"ranks have waited {point.seconds:.0f} s for each other, in {call(point.what, point.number)}. "
        f"{len(here)} of {point.world} ranks have arrived."
    ]
    lines += [f"  arrived: {arrival.name}" for arrival in here[:16]]
    if len(here) > 16:
        lines.append(f"  arrived: {len(here) - 16} more")
    collective = next((a.answer["collective"] for a in here if a.answer.get("collective")), "")
    if collective:
        lines.append(f"    flight recorder: {collective}")
    stack = next((a.answer["stack"] for a in here if a.answer.get("stack")), "")
    if stack:
        lines.append(f"    stack of {here[0].name}:" if missing else "    stack of one of them:")
        lines += _indented(stack, 20 if missing else _MOST_LINES)
    shown: dict[str, str] = {}
    for status in missing:
        lines.append(f"  missing: {status.name} {status.text}")
        if status.collective:
            lines.append(f"    flight recorder: {status.collective}")
        if status.detail in shown:
            lines.append(f"    stack as that of {shown[status.detail]}")
        elif status.detail and len(shown) < _MOST_STACKS:
            shown[status.detail] = status.name
            lines += _indented(status.detail, _MOST_LINES)
    if not missing:
        lines.append(
            "  Nobody is missing: the communication itself does not go on (network, NCCL, P2P, shared memory)."
        )
    lines += [f"  {gpu}" for gpu in gpus]
    if any(status.kill or status.detail or status.moves for status in missing):
        lines.append("  A rank that only takes long (for data, a download, a checkpoint) looks like this, too.")
    last = {
        WAITS: f"  The ranks go on waiting. If nothing changes, the next report comes after {2 * point.seconds:.0f} s.",
        HELD_BACK: "  The job is not ended, since a missing rank moves.",
        ABORTS: f"  All ranks are ended now, with status {STATUS}.",
    }
    lines.append(last[after])
    return _printable("\n".join(lines))


def say(text: str) -> None:
    """Write to stderr. Given up after some seconds: the main thread may hang in a write, with the lock held."""

    def write() -> None:
        try:
            if sys.stderr is not None:
                sys.stderr.write(f"lightning_patches: {text}\n")
                sys.stderr.flush()
        except Exception:
            pass

    thread = threading.Thread(target=write, name="lightning_patches report", daemon=True)
    thread.start()
    thread.join(5.0)


def leave() -> None:
    """End this process at once. What is buffered for the terminal is written, if that does not take long."""

    def flush() -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass

    thread = threading.Thread(target=flush, daemon=True)
    thread.start()
    thread.join(1.0)
    os._exit(STATUS)


def _indented(text: str, most: int) -> list[str]:
    lines = text.rstrip().split("\n")
    if len(lines) > most:  # the inner end of a stack is what matters
        lines = ["  ...", *lines[-most:]]
    return [f"    {line}" for line in lines]


def _printable(text: str) -> str:
    """Without what would steer a terminal: it came over the network."""
    return "".join(c if c == "\n" or c.isprintable() else " " for c in text)
