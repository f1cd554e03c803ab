"""In: the errors of logs. Out: a :class:`~lightning_patches.GradientSyncError` in them, and what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lightning_patches.cli import _output
from lightning_patches.cli.diagnose import known
from lightning_patches.cli.diagnose.candidates import Log, Match

_RAISED = re.compile(r"(?:\w{1,100}\.){0,12}GradientSyncError: ")
_SUSPECTS = ("fabric-submodule-sync", "fabric-step-methods", "ddp-static-graph-manual", "spawned-parameters")
"""Patches for bugs that have ranks train different models."""


@dataclass
class OutOfSync:
    """Such an error in a log.

    Args:
        file: the log.
        line: number of the line, from 1.
        text: that line.
        is_patched: the log is of a program that ran with patches.
        suspects: known bugs that may have done it, where no patch was on.
    """

    file: str
    line: int
    text: str
    is_patched: bool
    suspects: list[Match] = field(default_factory=list)

    @property
    def do(self) -> str:
        what = (
            "At that step something goes past DDP for what the error names: a part of the module that is called by "
            "itself, a parameter that was unfrozen or added after the set-up, or a change that only some ranks make"
        )
        names = [match.record.name for match in self.suspects if not match.ruled_out]
        if self.is_patched or not names:
            return f"{what}."
        return f"{what}. Known bugs that do it: {', '.join(names)}. Run it once with the patches, and with the check."


def find(logs: list[Log]) -> list[OutOfSync]:
    """The first such error of each log."""
    found = []
    for one in logs:
        error = next((error for error in one.raised if _RAISED.match(error.words)), None)
        if error is not None:
            line, said = one.lines[error.message].number, _output.shown(error.words)
            records = [record for record in known.records() if record.name in _SUSPECTS]
            suspects = [
                Match(record, "", line, said, "words", error, file=one.name, facts=one.facts) for record in records
            ]
            found.append(OutOfSync(one.name, line, said, one.facts.is_patched, suspects))
    return found
