"""What is known of all ranks, as one line, as text and as data."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from typing import Any, Optional, Sequence

from lightning_patches import notices
from lightning_patches.ranks.hang import _files
from lightning_patches.ranks.hang._registry import THREADS

STATUS = 124
_MOST_STACKS = 8
_MOST_LINES = 90
_MOST_CHILDREN = 4

WAITS, ELSEWHERE, STILL, WORKS, SILENT, DIED, FAILED, LEFT, UNWATCHED, ABSENT = (
    "waits", "waits elsewhere", "stands still", "works", "does not answer", "died", "failed", "has left",
    "is not watched", "never began",
)  # fmt: skip
FINAL = (DIED, FAILED)
"""Kinds of ranks without which the job cannot finish."""


@dataclass
class State:
    """A rank, as it was seen.

    Args:
        name: ``"rank 3"``.
        rank: its number, ``None`` if it is not known.
        where: ``"host vm, pid 123"``.
        kind: one of the constants of this module.
        call: where it waits, ``"barrier, collective number 3"``.
        seconds: for how long it has waited, or stood still.
        place: ``"train.py:12 in training_step"``.
        text: what it does, in words.
        detail: its stack, or the error it ended with.
        collective: its last collective, as the flight recorder knows it.
        children: of the processes that it has started, what each does, with its stack if it is Python.
        recorder: its last collectives, as the flight recorder knows them.
        works: it is seen to work.
        unseen: whether it works can't be seen.
    """

    name: str
    rank: Optional[int]
    where: str
    kind: str
    call: str = ""
    seconds: float = 0.0
    place: str = ""
    text: str = ""
    detail: str = ""
    collective: str = ""
    works: bool = False
    unseen: bool = False
    children: list[str] = field(default_factory=list)
    recorder: list[dict[str, Any]] = field(default_factory=list)

    @property
    def whole_name(self) -> str:
        return f"{self.name} ({self.where})" if self.where else self.name


@dataclass
class Report:
    """All ranks at a moment.

    Args:
        states: of the ranks.
        call: the call in which ranks wait; "" if none does.
        seconds: for how long the one that has waited longest has done so, or all have stood still.
        gpus: a line for each GPU.
        after: what comes next, in a sentence.
    """

    states: list[State]
    call: str
    seconds: float
    gpus: Sequence[str] = ()
    after: str = ""

    @property
    def arrived(self) -> list[State]:
        return [state for state in self.states if state.kind == WAITS]

    @property
    def missing(self) -> list[State]:
        return [state for state in self.states if state.kind != WAITS]

    def verdict(self) -> str:
        """The whole in one line: the ranks that keep the others from going on, and those that wait for them."""
        parts: dict[tuple[str, str], list[State]] = {}
        order = (DIED, FAILED, ABSENT, SILENT, LEFT, UNWATCHED, STILL, ELSEWHERE, WORKS, WAITS)
        for state in sorted(self.states, key=lambda state: order.index(state.kind)):
            same = state.place if state.kind in (STILL, WORKS) else _in_short(state)
            parts.setdefault((state.kind, same), []).append(state)
        said = []
        for states in parts.values():
            text = _in_short(max(states, key=lambda state: state.seconds))
            said.append(f"{_names(states)} {text if len(states) == 1 else _plural(text)}")
        if self.call and not self.missing:
            said.append("nobody is missing, the communication itself does not go on")
        if any(state.kind in FINAL for state in self.states):
            said[0] += ": the job cannot finish"
        return "; ".join(said)

    def text(self) -> str:
        """For a terminal or a file."""
        verdict = self.verdict()
        end = "" if verdict.endswith("...") else "."
        lines = [f"{verdict}{end}", *self._head(), *self._arrived(), *self._missing()]
        lines += [f"  {gpu}" for gpu in self.gpus]
        if any(state.kind in (STILL, WORKS, SILENT) for state in self.missing):
            lines.append("  A rank that is only slow (data, a download, a checkpoint) looks like this, too.")
        lines += [f"  {self.after}"] if self.after else []
        return printable("\n".join(lines))

    def as_dict(self) -> dict[str, Any]:
        """For a program."""
        return {
            "schema": 1,
            "verdict": printable(self.verdict()),
            "seconds": round(self.seconds, 1),
            "ranks": [vars(state) for state in self.states],
            "gpus": list(self.gpus),
            "after": self.after,
        }

    # ---------------------------------------------------------------- parts of the text

    def _head(self) -> list[str]:
        count = len(self.states)
        if self.call:
            return [
                f"  Ranks have waited {self.seconds:.0f} s for each other, in {self.call}. "
                f"{len(self.arrived)} of {count} ranks have arrived."
            ]
        return [f"  No rank waits for another; none has progressed for {self.seconds:.0f} s."] if self.seconds else []

    def _arrived(self) -> list[str]:
        here = self.arrived
        places = len({state.place for state in here}) > 1  # perhaps not the same call, although it has the same number
        lines = [f"  arrived: {state.whole_name}{f', at {state.place}' * places}" for state in here[:16]]
        lines += [f"  arrived: {len(here) - 16} more"] if len(here) > 16 else []
        shown = next((state for state in here if state.detail), None)
        if shown is not None:
            lines += [f"    flight recorder: {shown.collective}"] if shown.collective else []
            lines.append(f"    stack of {shown.name}:" if self.missing else "    stack of one of them:")
            lines += indented(shown.detail, 20 if self.missing else _MOST_LINES)
        return lines

    def _missing(self) -> list[str]:
        lines: list[str] = []
        shown: dict[str, str] = {}
        for state in self.missing:
            lines.append(f"  {'missing: ' if self.call else ''}{state.whole_name} {state.text}")
            lines += [f"    flight recorder: {state.collective}"] if state.collective else []
            if state.detail in shown:
                lines.append(f"    same stack as {shown[state.detail]}")
            elif state.detail and len(shown) < _MOST_STACKS:
                shown[state.detail] = state.name
                lines += indented(state.detail, _MOST_LINES)
            for child in state.children[:_MOST_CHILDREN]:
                lines += indented(child, 20)
        return lines


def call(what: str, number: int, group: str = "") -> str:
    """``"barrier, collective number 3"``"""
    if number < 0:
        return f"{what} (there is no process group yet)"
    return f"{what}, collective number {number}{f' of group {group}' if group not in ('', '0') else ''}"


def _in_short(state: State) -> str:
    if state.kind in (WAITS, ELSEWHERE):
        return f"in {state.call.replace(', collective number', '')}"
    if state.kind == STILL:
        does = "has made no progress" if state.works else "has not moved"
        return f"{does} for {state.seconds:.0f} s, at {state.place}"
    if state.kind == WORKS:
        return f"works, at {state.place}"
    if state.kind == FAILED:
        return f"ended with an error: {_cut(state.detail.rstrip().rpartition(chr(10))[2])}"
    if state.kind == DIED:
        return f"died ({state.text.rstrip('.').partition(': ')[2].partition('. ')[0] or 'it is gone'})"
    if state.kind == SILENT:
        return f"does not answer ({state.text.partition(': ')[2].partition('. ')[0].partition(' (')[0].rstrip('.')})"
    return state.kind


def _cut(text: str, most: int = 200) -> str:
    """Of a longer text its beginning, up to a word's end, and "..."; of a word that takes most of it, a part."""
    if len(text) <= most:
        return text
    kept, space, _ = text[: most - 3].rpartition(" ")
    return f"{kept}{space}..." if len(kept) > most // 2 else f"{text[: most - 3]}..."


def _plural(text: str) -> str:
    first, _, rest = text.partition(" ")
    return f"{ {'has': 'have', 'does': 'do', 'is': 'are', 'works,': 'work,'}.get(first, first) } {rest}"


def _names(states: list[State]) -> str:
    """``"ranks 0 to 2 and 5"``"""
    numbers = sorted(state.rank for state in states if state.rank is not None)
    if len(numbers) < len(states):
        return ", ".join(state.name for state in states[:4]) + (" and others" if len(states) > 4 else "")
    spans: list[list[int]] = []
    for one in numbers:
        if spans and one == spans[-1][1] + 1:
            spans[-1][1] = one
        else:
            spans.append([one, one])
    said = [f"{a} to {b}" if b - a > 1 else f"{a}, {b}" if b > a else f"{a}" for a, b in spans]
    more = " and others" if len(said) > 8 else ""
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(said[:8])}{more}"


def say(text: str) -> None:
    """Write to stderr; to stdout, or into a file, where that is closed.

    Given up after some seconds: the main thread may hang in a write, with the lock held.
    """

    def write() -> None:
        line = f"lightning_patches: {text}\n"
        for stream in (sys.stderr, sys.stdout):
            try:
                if stream is not None:
                    stream.write(line)
                    stream.flush()
                    return
            except Exception:
                continue
        try:
            with tempfile.NamedTemporaryFile(
                "a", prefix="lightning_patches-hang-", suffix=".txt", delete=False
            ) as file:
                file.write(line)
        except Exception:
            pass

    thread = threading.Thread(target=write, name=f"{THREADS} report", daemon=True)
    thread.start()
    thread.join(5.0)


def tell(text: str, data: dict[str, Any]) -> None:
    """A report: to the terminal first, then into files, if the user wants any."""
    path = _files.place()
    say(f"{text}\n  With all stacks in {path}.jsonl." if path else text)
    trouble = _files.save(text, data)
    if trouble:
        say(f"the report is not in {_files.VARIABLE}={os.path.dirname(path)}: {printable(trouble)}.")


def say_in_short(text: str) -> None:
    """One line that is no report; not where the user has asked for silence."""
    if not notices.quiet:
        say(text)


def leave() -> None:
    """End this process at once. What is buffered for the terminal is written, if that does not take long."""

    def flush() -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass

    thread = threading.Thread(target=flush, name=f"{THREADS} flush", daemon=True)
    thread.start()
    thread.join(1.0)
    os._exit(STATUS)


def indented(text: str, most: int) -> list[str]:
    lines = text.rstrip().split("\n")
    if len(lines) > most:  # the inner end of a stack is what matters
        lines = ["  ...", *lines[-most:]]
    return [f"    {line}" for line in lines]


def printable(text: str) -> str:
    """Without what would steer a terminal: it came from other processes."""
    return "".join(c if c == "\n" or c.isprintable() else " " for c in text)
