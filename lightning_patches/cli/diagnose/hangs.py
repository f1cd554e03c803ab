"""What the hang watch has printed or written, and what to do about it.

Its files of JSON have a kind for each rank. Of what it prints, in a file or in a program's log, only the beginning is
read, which names the ranks that keep the others from going on.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from lightning_patches.cli import _output
from lightning_patches.ranks.hang import _report

MORE_MEMORY = (
    "Give the job more memory, or make it need less: fewer workers, ranks that load in turns (`rank_by_rank`)."
)

_AT_END, _ALONE = "at its end", "alone"
_DO = {
    _report.OUT_OF_MEMORY: MORE_MEMORY,
    _report.DIED: "Look at what that rank itself has printed last, and at its node's kernel log (`dmesg`).",
    _report.FAILED: "Fix that error: the other ranks are only waiting for that rank.",
    _report.ABSENT: "Look at the launcher: no process was started for that rank, or it ended at once.",
    _report.UNWATCHED: "Start every rank with LIGHTNING_PATCHES_HANG_TIMEOUT, and look at that one by hand.",
    _report.SILENT: "That process runs no Python: its state and its stack in the report say why.",
    _AT_END: "Something that runs at exit does not return: the report has its stack.",
    _report.LEFT: "That rank's program came to its end before the others: it had less data, or left a loop early.",
    _report.WAITS: "All ranks are there: look at the network between them (interfaces, firewalls, NCCL_DEBUG=INFO).",
    _report.STILL: "Look at the line where it stands: the report has its whole stack, and those of the processes that "
    "it has started.",
    _report.WORKS: "That rank is only slow. Let the others wait longer, or share the work out.",
    _report.ELSEWHERE: "Ranks are in different collectives: look for a branch that not all of them take.",
    _ALONE: "Look at the process of rank 0 and at its node: nothing of it can be reached from where this was said.",
}
"""For each kind what to do, the gravest first."""
_PLACE_AT_END = "the program's end"
"""With which the place of a rank begins that does not get out of its program."""
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
    (_report.WAITS, r"in \w+[^;]*; nobody is missing"),
    (_report.ELSEWHERE, r"in \w"),
)
_SAYS = "|".join(f"(?P<kind{number}>{pattern})" for number, (_, pattern) in enumerate(_KINDS))
_SAID = re.compile(rf"lightning_patches: (?P<verdict>ranks? \d[\d, to]*(?:and (?:\d+|others) )?(?:{_SAYS}).*)")
_OVER = re.compile(r"lightning_patches: no rank waits any more\b")
_MARK, _MARK_OF_JSON = b"lightning_patches: ", b'{"time": '
_LONGEST_LINE, _LONGEST_REPORT = 4096, 8 << 20
_MOST_SPOILT = 64
"""Lines of JSON at the end of a file that are looked at for one that is a report."""


@dataclass
class Hang:
    """A report of the hang watch.

    Args:
        file: it is from.
        verdict: its first line.
        kind: the gravest of its ranks' kinds; one of the keys of ``_DO``.
        count: of reports in the file, of which it is the last.
        ranks: as the watch has written them; none in what it prints.
        time: when it was written, 0 if that is not told.
    """

    file: str
    verdict: str
    kind: str
    count: int = 1
    ranks: list[dict[str, Any]] = field(default_factory=list)
    time: float = 0.0

    @property
    def do(self) -> str:
        return _DO[self.kind]

    def as_dict(self) -> dict[str, Any]:
        return {"file": self.file, "verdict": self.verdict, "do": self.do, "count": self.count, "ranks": self.ranks}


class Reports:
    """Looks through a file or a log for reports, block by block.

    Args:
        file: its name.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._rest = b""
        self._printed: Optional[Hang] = None
        self._in_json: deque[bytes] = deque(maxlen=_MOST_SPOILT)
        self._count = 0

    def feed(self, block: bytes) -> None:
        data = self._rest + block
        done = 0
        for at in sorted([*_places(data, _MARK), *_places(data, _MARK_OF_JSON)]):
            if at < done:
                continue
            is_json = data.startswith(_MARK_OF_JSON, at)
            most = _LONGEST_REPORT if is_json else _LONGEST_LINE
            end = data.find(b"\n", at, at + most)
            if end < 0 and len(data) - at < most:
                self._rest = data[at:]
                return
            done = end if end >= 0 else at + most
            self._take(data[at:done], is_json)
        self._rest = data[done:][-len(_MARK) :]

    def finish(self) -> Optional[Hang]:
        """The last report, of those in JSON if there are any; ``None`` if there is none, or if the wait was over."""
        if self._rest.startswith((_MARK, _MARK_OF_JSON)):
            self._take(self._rest, self._rest.startswith(_MARK_OF_JSON))
        self._rest = b""
        in_json = filter(None, (self._parsed(line) for line in reversed(self._in_json)))
        return next(in_json, self._printed)

    def _take(self, line: bytes, is_json: bool) -> None:
        if is_json:
            self._count += 1
            self._in_json.append(line)
            return
        said = line.decode("utf-8", "replace").rstrip()
        found = _SAID.match(said)
        if found is not None:
            kind = next(kind for number, (kind, _) in enumerate(_KINDS) if found[f"kind{number}"] is not None)
            count = self._printed.count + 1 if self._printed is not None else 1
            self._printed = Hang(self._file, _output.printable(found["verdict"].rstrip(".")), kind, count)
        elif _OVER.match(said):
            self._printed = None

    def _parsed(self, line: bytes) -> Optional[Hang]:
        """The report that a line of JSON is; ``None`` of what somebody else has written, or has spoilt."""
        try:
            report = json.loads(line)
            told = report["ranks"]
            ranks = [rank for rank in told if isinstance(rank, dict)] if isinstance(told, list) else []
            json.dumps(ranks, indent=1)
            verdict = report["verdict"]
        except (ValueError, RecursionError, TypeError, KeyError):
            return None
        if not isinstance(verdict, str):
            return None
        time = report["time"] if isinstance(report.get("time"), float) else 0.0
        verdict = _output.printable(verdict[:_LONGEST_LINE])
        return Hang(self._file, verdict, _gravest(ranks), self._count, ranks, time)


def _places(data: bytes, mark: bytes) -> Iterator[int]:
    at = data.find(mark)
    while at >= 0:
        if mark is _MARK or at == 0 or data[at - 1 : at] == b"\n":
            yield at
        at = data.find(mark, at + len(mark))


def _gravest(ranks: list[dict[str, Any]]) -> str:
    """What is to be dealt with first."""
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
    """The last report of each file that the watch has written into a directory, the oldest first.

    Raises:
        OSError: it can't be read.
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
