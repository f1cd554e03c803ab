"""Reports on all ranks: as one line, as text and as data."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import asdict, dataclass, field
from typing import Any, Optional, Sequence

from lightning_patches import notices
from lightning_patches.ranks.hang import _files
from lightning_patches.ranks.hang._messages import printable
from lightning_patches.ranks.hang._registry import THREADS

STATUS = 124
MOST_LINES = 25
"""Maximum number of lines of a report on the terminal. The file has the complete report."""
MOST_OF_A_STACK = 90
_MOST_STACKS = 8
_MOST_NAMED = 4
_MOST_GPUS = 2

WAITS, ELSEWHERE, STILL, WORKS, SILENT, DIED, OUT_OF_MEMORY, FAILED, LEFT, UNWATCHED, ABSENT = (
    "waits", "waits elsewhere", "stands still", "works", "does not answer", "died", "out of memory", "failed",
    "has left", "is not watched", "never began",
)  # fmt: skip
FINAL = (DIED, OUT_OF_MEMORY, FAILED)
"""States of a rank with which the job can't finish."""


@dataclass(frozen=True)
class Call:
    """The call in which ranks wait.

    Args:
        what: ``"barrier"``.
        number: sequence number of the collective; negative before the process group exists.
        group: name of the process group, unless it is the default group.
    """

    what: str
    number: int
    group: str = ""

    def __str__(self) -> str:
        if self.number < 0:
            return f"{self.what} (there is no process group yet)"
        return f"{self.what}, collective number {self.number}{self._of_group}"

    @property
    def short(self) -> str:
        return str(self) if self.number < 0 else f"{self.what} {self.number}{self._of_group}"

    @property
    def _of_group(self) -> str:
        return f" of group {self.group}" if self.group not in ("", "0") else ""


@dataclass(frozen=True)
class Next:
    """The next action after a report.

    Args:
        kind: a key of ``_NEXT``.
        seconds: seconds until the action.
        who: name of the rank because of which the job is not ended.
    """

    kind: str
    seconds: float = 0.0
    who: str = ""

    def __str__(self) -> str:
        return _NEXT[self.kind].format(status=STATUS, seconds=self.seconds, who=self.who)


ENDS_NOW, ENDS_SOON, STILL_WORKS, MAY_WORK, ENDS_LATER, KEEPS_WAITING = (
    "ends now", "ends soon", "spares", "cannot see", "ends later", "goes on",
)  # fmt: skip
_NEXT = {
    ENDS_NOW: "All ranks are ended now, with status {status}.",
    ENDS_SOON: "All ranks are ended in {seconds:.0f} s.",
    STILL_WORKS: "The job is not ended, since {who} works.",
    MAY_WORK: "The job is not ended, since it is unknown if {who} works.",
    ENDS_LATER: "All ranks are ended if nothing has changed after {seconds:.0f} s.",
    KEEPS_WAITING: "The ranks keep waiting. If nothing changes, the next report comes after {seconds:.0f} s.",
}


@dataclass
class State:
    """The state of a rank in a report.

    Args:
        name: ``"rank 3"``.
        rank: the number of the rank; ``None`` if unknown.
        where: ``"host vm, pid 123"``.
        kind: one of the constants of this module.
        call: the call in which the rank waits.
        seconds: seconds for which it has waited or not moved.
        place: position in the user's code, ``"train.py:12 in training_step"``.
        cause: why the rank does not answer, died or failed: the state of its process, or its error.
        text: description of the state, to follow the name.
        detail: its stack, or the error that ended it.
        frames: its shortened stack, one string per frame.
        collective: its last collective, from the flight recorder.
        children: description of each child process, with its stack if it is a Python process.
        recorder: its last collectives, from the flight recorder.
        works: True if the rank works.
        unseen: True if it is unknown if the rank works.
    """

    name: str
    rank: Optional[int]
    where: str
    kind: str
    call: Optional[Call] = None
    seconds: float = 0.0
    place: str = ""
    cause: str = ""
    text: str = ""
    detail: str = ""
    frames: list[str] = field(default_factory=list)
    collective: str = ""
    works: bool = False
    unseen: bool = False
    children: list[str] = field(default_factory=list)
    recorder: list[dict[str, Any]] = field(default_factory=list)

    @property
    def whole_name(self) -> str:
        return f"{self.name} ({self.where})" if self.where else self.name

    @property
    def situation(self) -> tuple[str, ...]:
        """A key that is equal for ranks in the same state. It ignores the position of a working rank."""
        if self.kind in (WAITS, ELSEWHERE):
            return self.kind, str(self.call)
        return self.kind, self.place if self.kind == STILL else "", self.cause

    def in_short(self, several: bool = False) -> str:
        """Return the text that follows the name of the rank, or the names of several ranks in the same state."""
        has, does, is_ = ("have", "do", "are") if several else ("has", "does", "is")
        if self.kind in (WAITS, ELSEWHERE):
            return f"in {self.call.short if self.call is not None else ''}"
        if self.kind == STILL:
            did = "made no progress" if self.works else "not moved"
            return f"{has} {did} for {self.seconds:.0f} s, at {self.place}"
        if self.kind == WORKS:
            return f"{'work' if several else 'works'}, at {self.place}"
        if self.kind == FAILED:
            return f"ended with an error: {notices.cut(self.cause)}"
        if self.kind in (DIED, OUT_OF_MEMORY):
            return f"died ({self.cause or 'it is gone'})"
        if self.kind == SILENT:
            return f"{does} not answer ({self.cause})"
        return {LEFT: f"{has} left", UNWATCHED: f"{is_} not watched", ABSENT: "never began"}[self.kind]


@dataclass
class Report:
    """The state of all ranks at one time.

    Args:
        states: the states of the ranks.
        call: the call in which ranks wait, if any rank waits.
        seconds: the longest wait of a rank, or the time for which no rank has moved.
        gpus: a line for each GPU.
        after: the next action.
    """

    states: list[State]
    call: Optional[Call]
    seconds: float
    gpus: Sequence[str] = ()
    after: Optional[Next] = None

    @property
    def arrived(self) -> list[State]:
        return [state for state in self.states if state.kind == WAITS]

    @property
    def missing(self) -> list[State]:
        return [state for state in self.states if state.kind != WAITS]

    @property
    def situation(self) -> list[tuple[str, ...]]:
        """A key that is equal for reports that differ only in their times."""
        return [(state.name, *state.situation) for state in self.states]

    def verdict(self) -> str:
        """Return one line that names the ranks that block others, and the ranks that wait for them."""
        parts: dict[tuple[str, ...], list[State]] = {}
        order = (OUT_OF_MEMORY, DIED, FAILED, ABSENT, SILENT, LEFT, UNWATCHED, STILL, ELSEWHERE, WORKS, WAITS)
        for state in sorted(self.states, key=lambda state: order.index(state.kind)):
            place = (state.place,) if state.kind == WORKS else ()
            parts.setdefault((*state.situation, *place), []).append(state)
        sentences = []
        for states in parts.values():
            longest = max(states, key=lambda state: state.seconds)
            sentences.append(f"{_names(states)} {longest.in_short(len(states) > 1)}")
        if self.call and not self.missing:
            sentences.append("no rank is missing, but the collective makes no progress")
        if any(state.kind in FINAL for state in self.states):
            sentences[0] += ": the job cannot finish"
        return printable("; ".join(sentences))

    def text(self) -> str:
        """Return the complete report, for a file."""
        lines = [self._first(), *self._head(), *self._arrived(), *self._missing(), *(f"  {gpu}" for gpu in self.gpus)]
        return in_lines([*lines, *self._end()])

    def in_short(self) -> str:
        """Return the report for a terminal: at most ``MOST_LINES`` lines, including the line with the file's name."""
        head = [self._first(), *self._head()]
        end = [*(f"  {gpu}" for gpu in self.gpus[:_MOST_GPUS]), *self._end()]
        arrived = [f"  arrived: {state.whole_name}, at {state.place}" for state in self.arrived[:_MOST_NAMED]]
        if len(self.arrived) > _MOST_NAMED:
            arrived.append(f"  arrived: {len(self.arrived) - _MOST_NAMED} more")
        arrived += next(filter(None, map(_recorded, self.arrived)), [])
        missing = self._missing_in_short(MOST_LINES - 1 - len(head) - len(arrived) - len(end))
        return in_lines([*head, *arrived, *missing, *end])

    def again(self) -> str:
        """Return the report for a terminal that already shows the same situation."""
        return in_lines([self._first(), f"  No change. {self.after or ''}".rstrip()])

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        after = self.after
        return {
            "schema": 1,
            "verdict": self.verdict(),
            "seconds": round(self.seconds, 1),
            "call": asdict(self.call) if self.call is not None else None,
            "ranks": [{**vars(state), "call": str(state.call or "")} for state in self.states],
            "gpus": list(self.gpus),
            "after": str(after or ""),
            "next": asdict(after) if after is not None else None,
        }

    # ---------------------------------------------------------------- parts of the text

    def _first(self) -> str:
        verdict = self.verdict()
        return f"{verdict}{'' if verdict.endswith('...') else '.'}"

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
        lines = [f"  arrived: {state.whole_name}, at {state.place}" for state in here]
        shown = next((state for state in here if state.detail), None)
        if shown is not None:
            lines += _recorded(shown)
            lines.append(f"    stack of {shown.name}:" if self.missing else "    stack of one of them:")
            lines += indented(shown.detail, MOST_OF_A_STACK)
        return lines

    def _missing(self) -> list[str]:
        lines: list[str] = []
        shown: dict[str, str] = {}
        for state in self.missing:
            lines += [self._named(state), *_recorded(state)]
            if state.detail in shown:
                lines.append(f"    same stack as {shown[state.detail]}")
            elif state.detail and len(shown) < _MOST_STACKS:
                shown[state.detail] = state.name
                lines += indented(state.detail, MOST_OF_A_STACK)
            for child in state.children:
                lines += indented(child, MOST_OF_A_STACK)
        return lines

    def _missing_in_short(self, most: int) -> list[str]:
        """Return the missing ranks with their innermost frames. The ranks share ``most`` lines equally."""
        blocking = self.missing or self.arrived[:1]
        named = blocking[: max(1, min(len(blocking), most // 4))]
        more = [f"  and {len(blocking) - len(named)} more"] if len(blocking) > len(named) else []
        lines: list[str] = []
        shown: dict[tuple[str, ...], str] = {}
        for number, state in enumerate(named):
            rest = (most - len(more) - len(lines)) // (len(named) - number) - 1
            lines.append(self._named(state) if self.missing else f"  stack of {state.name}:")
            frames = tuple(state.frames)
            details = _recorded(state)[: max(0, rest - 1)]
            if frames and frames in shown:
                details.append(f"    same stack as {shown[frames]}")
            elif frames:
                shown[frames] = state.name
                children = [line for child in state.children for line in child.rstrip().split("\n")]
                for_children = min(len(children), max(0, rest // 2))
                details += indented("\n".join(frames), max(2, rest - len(details) - for_children) - 1)
                details += [f"    {line}" for line in children[: max(0, rest - len(details))]]
            lines += details[: max(0, rest)]
        return [*lines, *more]

    def _named(self, state: State) -> str:
        return f"  {'missing: ' if self.call else ''}{state.whole_name} {state.text}"

    def _end(self) -> list[str]:
        lines = []
        if any(state.kind in (STILL, WORKS, SILENT) for state in self.missing):
            lines.append("  A rank that is only slow (data, a download, a checkpoint) also looks like this.")
        return [*lines, f"  {self.after}"] if self.after is not None else lines


def _recorded(state: State) -> list[str]:
    return [f"    flight recorder: {state.collective}"] if state.collective else []


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
    texts = [f"{a} to {b}" if b - a > 1 else f"{a}, {b}" if b > a else f"{a}" for a, b in spans]
    more = " and others" if len(texts) > 8 else ""
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(texts[:8])}{more}"


def say(text: str) -> None:
    """Write to stderr, or to stdout if stderr is closed.

    Waits at most five seconds, since the main thread may hang in a write while it holds the stream's lock.
    """

    def write() -> None:
        for stream in (sys.stderr, sys.stdout):
            try:
                if stream is not None:
                    stream.write(f"lightning_patches: {text}\n")
                    stream.flush()
                    return
            except Exception:
                continue

    thread = threading.Thread(target=write, name=f"{THREADS} report", daemon=True)
    thread.start()
    thread.join(5.0)


def publish(report: Report, again: bool = False) -> None:
    """Print a report in short form, and write the complete report to files.

    Args:
        report: the report.
        again: True if the terminal already shows the same situation.
    """
    in_short = report.again() if again else report.in_short()
    print_and_write(in_short, report.text(), report.as_dict())


def print_and_write(in_short: str, text: str, data: dict[str, Any]) -> None:
    """Print the short text and the names of the files, and write the complete text to these files."""
    try:
        path = _files.place()
    except OSError:
        say(in_short)
        return
    say(f"{in_short}\n  Complete report, with all stacks: {printable(path)}.txt and .jsonl")
    problem = _files.save(path, text, data)
    if problem:
        say(f"the report can't be written to {printable(os.path.dirname(path))}: {printable(problem)}.")


def print_line(text: str) -> None:
    """Print one line that is not a report, unless the toggle has ``quiet``."""
    if not notices.is_quiet():
        say(text)


def leave() -> None:
    """End this process immediately, after an attempt to flush stdout and stderr within a second."""

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
    if len(lines) > most:  # keep the innermost frames
        lines = ["  ...", *lines[-most:]]
    return [f"    {line}" for line in lines]


def in_lines(lines: Sequence[str]) -> str:
    """Join lines, with control characters escaped."""
    return "\n".join(map(printable, lines))
