"""Find lines of a log that exclude a record: the program does not have what the bug needs (``needs.txt``), or another
version of a package."""

from __future__ import annotations

import pkgutil
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from packaging.requirements import Requirement

from lightning_patches.cli.diagnose.known import Record
from lightning_patches.cli.diagnose.lines import Line

MOST_LINES = 5000
"""Most lines before an error, and after it, that are compared."""
_KEYS = ("no", "even", "later", "yes", "always")
_START = re.compile(r"\b[GT]PU available: ")
"""A line at the start of each program with a Trainer."""
_BEFORE_START = 5
"""Number of lines before it that may belong to the same program."""
_STEPS = re.compile(r"\bEpoch \d|Trainable params")
"""Lines that follow the start and everything that Lightning logs before the first step."""
_VERSIONS = re.compile(
    r"(?<![\w./-])(?P<name>torch|rich|mlflow|setuptools|lightning-cloud)(?:==|: {1,20}|-)(?P<version>\d+\.\d+)"
    r"|PyTorch [Vv]ersion(?: \(e\.g\.,? [\w.]{1,12}\))?: ?(?P<torch>\d+\.\d+)|[Pp]ython[ /]?(?P<python>3\.\d+)\b"
)


class Need(NamedTuple):
    """What a run with a bug must have.

    Args:
        reason: the reason, if a log excludes it.
        no, yes: patterns of lines that exclude and show it.
        even: patterns of lines that exclude it although a frame shows the bug.
        later: patterns of lines after the error or text that exclude it.
        always: pattern of a line that each run with it has.
        records: names of the records that need it.
    """

    reason: str
    no: tuple[re.Pattern[str], ...]
    even: tuple[re.Pattern[str], ...]
    later: tuple[re.Pattern[str], ...]
    yes: tuple[re.Pattern[str], ...]
    always: tuple[re.Pattern[str], ...]
    records: frozenset[str]

    def is_excluded(self, text: str, is_by_frame: bool) -> bool:
        """True if the lines of a program up to its error exclude it."""
        if _has(text, self.even):
            return True
        if is_by_frame or _has(text, self.yes):
            return False
        is_whole = _START.search(text) is not None and _STEPS.search(text) is not None
        return _has(text, self.no) or (bool(self.always) and is_whole and not _has(text, self.always))


def _has(text: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    return any(pattern.search(text) for pattern in patterns)


def excluded(record: Record, lines: Sequence[Line], index: int, is_by_frame: bool = False) -> str:
    """Return the reason why a log excludes a record, or "".

    Args:
        record: the record.
        lines: the lines of the log.
        index: index of the last line of the error, or of the line with the record's text.
        is_by_frame: True if a frame of the code with the bug is in the error's traceback.
    """
    of_record = [need for need in needs() if record.name in need.records]
    if of_record:
        near = [line.text for line in lines[max(index - MOST_LINES, 0) : index + 1]]
        starts = [at for at, line in enumerate(near) if _START.search(line)]
        text = "\n".join(near[max((starts or [0])[-1] - _BEFORE_START, 0) :])
        after = "\n".join(line.text for line in lines[index + 1 : index + 1 + MOST_LINES])
        for need in of_record:
            if need.is_excluded(text, is_by_frame) or _has(after, need.later):
                return need.reason
    return "" if is_by_frame else _other_version(getattr(record, "only_with", ()), lines)


def _other_version(only_with: Sequence[str], lines: Sequence[Line]) -> str:
    """Return the reason why the versions that a log names exclude those with which a bug occurs, or ""."""
    for requirement in map(Requirement, only_with):
        found = {
            version
            for line in lines
            for match in _VERSIONS.finditer(line.text)
            for name, version in (
                (match["name"], match["version"]),
                ("torch", match["torch"]),
                ("python", match["python"]),
            )
            if name == requirement.name and version
        }
        if found and not any(requirement.specifier.contains(version) for version in found):
            return f"the log names {requirement.name} {' and '.join(sorted(found))}"
    return ""


@lru_cache(maxsize=None)
def needs() -> tuple[Need, ...]:
    """Return the blocks of ``needs.txt``."""
    text = (pkgutil.get_data(__package__, "needs.txt") or b"").decode("utf-8")
    found = []
    for block in re.split(r"(?m)^== ", text)[1:]:
        head, *rows = filter(None, block.splitlines())
        patterns: dict[str, list[re.Pattern[str]]] = defaultdict(list)
        records: set[str] = set()
        for row in rows:
            key, _, pattern = row.partition(" ")
            if key in _KEYS:
                patterns[key].append(re.compile(pattern))
            else:
                records.update(row.split())
        no, even, later, yes, always = (tuple(patterns[key]) for key in _KEYS)
        found.append(Need(head.split(" | ")[1], no, even, later, yes, always, frozenset(records)))
    return tuple(found)
