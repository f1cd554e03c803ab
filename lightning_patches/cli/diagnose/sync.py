"""Find a :class:`~lightning_patches.GradientSyncError` in logs, and the known bugs that may have caused it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Optional

from lightning_patches.cli import _output, _toggle
from lightning_patches.cli.diagnose import known
from lightning_patches.cli.diagnose.candidates import Candidate
from lightning_patches.cli.diagnose.log import Log
from lightning_patches.cli.diagnose.matches import with_verdicts

_RAISED = re.compile(r"(?:\w{1,100}\.){0,12}GradientSyncError: ")
_SUSPECTS = ("fabric-submodule-sync", "fabric-step-methods", "ddp-static-graph-manual", "spawned-parameters")
"""Patches for bugs that make ranks train different models."""


class OutOfSync(NamedTuple):
    """A GradientSyncError in a log.

    Args:
        file: name of the log.
        line: number of the line, from 1.
        text: that line.
        suspects: names of the known bugs that may have caused it; none if the program ran with patches.
    """

    file: str
    line: int
    text: str
    suspects: tuple[str, ...]


def find(
    logs: Sequence[Log], setting: _toggle.Toggle, required: Optional[Sequence[tuple[str, str]]]
) -> list[OutOfSync]:
    """Return the first GradientSyncError of each log. See :func:`matches.with_verdicts` for the arguments."""
    records = [record for record in known.records() if record.name in _SUSPECTS]
    found = []
    for log in logs:
        error = next((error for error in log.raised if _RAISED.match(error.words)), None)
        if error is not None:
            line, text = log.lines[error.message].number, _output.shown(error.words)
            suspects = [Candidate(record, "", line, text, "words", log, error) for record in records]
            names = [one.record.name for one in suspects if not with_verdicts(one, setting, required).ruled_out]
            found.append(OutOfSync(log.name, line, text, () if log.facts.is_patched else tuple(names)))
    return found
