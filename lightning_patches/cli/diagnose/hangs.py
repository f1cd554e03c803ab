"""Read the reports of the hang watch, and give advice on them.

The watch's JSON files have a kind for each rank. In a printed report, only the first line is read, which names the
ranks that block others.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from lightning_patches.cli import _output
from lightning_patches.ranks.hang import _report

MORE_MEMORY = (
    "Give the job more memory, or reduce its use: fewer workers, or ranks that load one by one (`rank_by_rank`)."
)

_AT_END, _ALONE = "at its end", "alone"
_DO = {
    _report.OUT_OF_MEMORY: MORE_MEMORY,
    _report.DIED: "Read that rank's last output, and its node's kernel log (`dmesg`).",
    _report.FAILED: "Fix that error: the other ranks are only waiting for that rank.",
    _report.ABSENT: "Check the launcher: it started no process for that rank, or the process ended at once.",
    _report.UNWATCHED: "Start every rank with LIGHTNING_PATCHES_HANG_TIMEOUT, and inspect that rank by hand.",
    _report.SILENT: "That process does not run Python code. The report has its state and its stack.",
    _AT_END: "A function that runs at exit does not return. The report has its stack.",
    _report.LEFT: "That rank's program ended before the others: it had less data, or left a loop early.",
    _report.WAITS: "All ranks have arrived. Check the network between them (interfaces, firewalls, NCCL_DEBUG=INFO).",
    _report.STILL: "Look at the line that the report names for that rank. The report also has the rank's whole stack, "
    "and the stacks of its child processes.",
    _report.WORKS: "That rank is only slow. Raise the timeout, or distribute its work.",
    _report.ELSEWHERE: "Ranks are in different collectives. Look for a branch that only some of them take.",
    _ALONE: "Check the process of rank 0 and its node: the rank that wrote the report could not reach it.",
}
"""Advice for each kind, the most serious kind first."""
_PLACE_AT_END = "the program's end"
"""Beginning of the position of a rank whose program has ended, but whose process has not."""
_KINDS = (
    (_report.OUT_OF_MEMORY, r"died \([^)]*OOM killer"),
    (_report.DIED, r"died \("),
    (_report.FAILED, r"ended with an error: "),
    (_report.ABSENT, r"never began"),
    (_report.SILENT, r"do(?:es)? not answer \("),
    (_report.LEFT, r"ha(?:s|ve) left(?=[;.]|$)"),
    (_report.UNWATCHED, r"(?:is|are) not watched(?=[;.]|$)"),
    (_ALONE, r"\(host [^)]*\) .*, and the watch of rank 0"),
    (_AT_END, rf"ha(?:s|ve) (?:not moved|made no progress) for [\d.]+ s, at {_PLACE_AT_END}"),
    (_report.STILL, r"ha(?:s|ve) (?:not moved|made no progress) for [\d.]+ s"),
    (_report.WORKS, r"works?, at "),
    (_report.WAITS, r"in \w+[^;]*; (?:no rank|nobody) is missing"),
    (_report.ELSEWHERE, r"in \w"),
)
_PATTERNS = "|".join(f"(?P<kind{number}>{pattern})" for number, (_, pattern) in enumerate(_KINDS))
_REPORT = re.compile(rf"lightning_patches: (?P<verdict>ranks? \d[\d, to]*(?:and (?:\d+|others) )?(?:{_PATTERNS}).*)")
_OVER = re.compile(r"lightning_patches: no rank waits any more\b")
_TEXT_START, _JSON_START = b"lightning_patches: ", b'{"time": '
_LONGEST_LINE, _LONGEST_REPORT = 4096, 8 << 20
_MOST_DAMAGED = 64
"""Number of lines at the end of a JSON file in which the last valid report is searched."""


@dataclass(frozen=True)
class Hang:
    """A report of the hang watch.

    Args:
        file: the file with the report.
        verdict: the first line of the report.
        kind: the most serious kind of its ranks, a key of ``_DO``.
        count: number of reports in the file. This report is the last one.
        ranks: the ranks in the JSON report; empty for a printed report.
        time: time of the report; 0 if unknown.
    """

    file: str
    verdict: str
    kind: str
    count: int = 1
    ranks: Sequence[dict[str, Any]] = ()
    time: float = 0.0

    @property
    def do(self) -> str:
        return _DO[self.kind]


class Reports:
    """Find the reports in a file or a log, block by block.

    Args:
        file: name of the file.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._rest = b""
        self._printed: Optional[Hang] = None
        self._in_json: deque[bytes] = deque(maxlen=_MOST_DAMAGED)
        self._count = 0

    def feed(self, block: bytes) -> None:
        data = self._rest + block
        done = 0
        for at in sorted([*_places(data, _TEXT_START), *_places(data, _JSON_START)]):
            if at < done:
                continue
            is_json = data.startswith(_JSON_START, at)
            most = _LONGEST_REPORT if is_json else _LONGEST_LINE
            end = data.find(b"\n", at, at + most)
            if end < 0 and len(data) - at < most:
                self._rest = data[at:]
                return
            done = end if end >= 0 else at + most
            self._read_report(data[at:done], is_json)
        self._rest = data[done:][-len(_TEXT_START) :]

    def finish(self) -> Optional[Hang]:
        """Return the last report, in JSON if possible; ``None`` if the file has none or the hang has ended."""
        if self._rest.startswith((_TEXT_START, _JSON_START)):
            self._read_report(self._rest, self._rest.startswith(_JSON_START))
        self._rest = b""
        in_json = filter(None, (self._parsed(line) for line in reversed(self._in_json)))
        return next(in_json, self._printed)

    def _read_report(self, line: bytes, is_json: bool) -> None:
        if is_json:
            self._count += 1
            self._in_json.append(line)
            return
        text = line.decode("utf-8", "replace").rstrip()
        found = _REPORT.match(text)
        if found is not None:
            kind = next(kind for number, (kind, _) in enumerate(_KINDS) if found[f"kind{number}"] is not None)
            count = self._printed.count + 1 if self._printed is not None else 1
            self._printed = Hang(self._file, _output.printable(found["verdict"].rstrip(".")), kind, count)
        elif _OVER.match(text):
            self._printed = None

    def _parsed(self, line: bytes) -> Optional[Hang]:
        """Parse a line of JSON. Return ``None`` if it is not a report, or is damaged."""
        try:
            report = json.loads(line)
            listed = report["ranks"]
            ranks = [rank for rank in listed if isinstance(rank, dict)] if isinstance(listed, list) else []
            json.dumps(ranks, indent=1)
            verdict = report["verdict"]
        except (ValueError, RecursionError, TypeError, KeyError):
            return None
        if not isinstance(verdict, str):
            return None
        time = report["time"] if isinstance(report.get("time"), float) else 0.0
        verdict = _output.printable(verdict[:_LONGEST_LINE])
        return Hang(self._file, verdict, _most_serious(ranks), self._count, ranks, time)


def _places(data: bytes, mark: bytes) -> Iterator[int]:
    at = data.find(mark)
    while at >= 0:
        if mark is _TEXT_START or at == 0 or data[at - 1 : at] == b"\n":
            yield at
        at = data.find(mark, at + len(mark))


def _most_serious(ranks: list[dict[str, Any]]) -> str:
    """Return the most serious kind of the ranks."""
    kinds = {_kind(rank) for rank in ranks} & _DO.keys()
    if not kinds:
        return _ALONE
    return next(kind for kind in _DO if kind in kinds and (kind != _report.WAITS or kinds == {kind}))


def _kind(rank: dict[str, Any]) -> str:
    kind = str(rank.get("kind"))
    if kind == _report.STILL and str(rank.get("place")).startswith(_PLACE_AT_END):
        return _AT_END
    return kind


def in_directory(path: str) -> list[Hang]:
    """Return the last report of each file of the hang watch in a directory, oldest first.

    Raises:
        OSError: the directory can't be read.
    """
    names = {name for name in os.listdir(path) if name.startswith("hang-")}
    chosen = [name for name in sorted(names) if name.endswith(".jsonl")]
    chosen += [name for name in sorted(names) if name.endswith(".txt") and f"{name[:-4]}.jsonl" not in names]
    found = [_in_file(os.path.join(path, name)) for name in chosen]
    return sorted(filter(None, found), key=lambda hang: hang.time)


def _in_file(path: str) -> Optional[Hang]:
    if not os.path.isfile(path):
        return None
    reports = Reports(path)
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 22), b""):
            reports.feed(block)
    return reports.finish()
