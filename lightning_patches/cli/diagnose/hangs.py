"""Reports of the hang watch: in its files, and what to do about each."""

from __future__ import annotations

import os
from typing import Any

from lightning_patches.ranks.hang import _files

MORE_MEMORY = (
    "Give the job more memory, or make it need less: fewer workers, ranks that load in turns (`rank_by_rank`)."
)

_ON_HANGS = (
    (
        ("OOM killer",),
        MORE_MEMORY,
    ),
    ((" died (",), "Look at what that rank itself has printed last, and at its node's kernel log (`dmesg`)."),
    (("ended with an error",), "Fix that error: the other ranks are only waiting for that rank."),
    (("never began",), "Look at the launcher: no process was started for that rank, or it ended at once."),
    (
        ("is not watched", "are not watched"),
        "Start every rank with LIGHTNING_PATCHES_HANG_TIMEOUT, and look at that one by hand.",
    ),
    (
        ("do not answer", "does not answer"),
        "That process runs no Python: its state and its stack in the report say why.",
    ),
    (("at the program's end",), "Something that runs at exit does not return: the report has its stack."),
    (
        ("has left", "have left"),
        "That rank's program came to its end before the others: it had less data, or left a loop early.",
    ),
    (
        ("nobody is missing",),
        "All ranks are there: look at the network between them (interfaces, firewalls, NCCL_DEBUG=INFO).",
    ),
    (
        ("has not moved", "have not moved", "made no progress"),
        "Look at the line where it stands: the report has its whole "
        "stack, and those of the processes that it has started.",
    ),
    (("works", "work,"), "That rank is only slow. Let the others wait longer, or share the work out."),
    (("",), "Ranks are in different collectives: look for a branch that not all of them take."),
)


def reports(name: str) -> list[dict[str, Any]]:
    """The reports of the hang watch in a file or directory; none if it is something else."""
    try:
        return _files.load(name) if os.path.isdir(name) or os.path.isfile(name) else []
    except OSError:
        return []


def read(names: list[str]) -> list[dict[str, Any]]:
    """The last report of each file of the hang watch, with what to do."""
    last: dict[str, dict[str, Any]] = {}
    for report in (report for name in names for report in reports(name)):
        count = last[report["file"]]["count"] + 1 if report["file"] in last else 1
        last[report["file"]] = {
            "file": report["file"],
            "verdict": report["verdict"],
            "do": _advice_on_hang(report["verdict"]),
            "count": count,
            "ranks": report["ranks"],
        }
    return list(last.values())


def _advice_on_hang(verdict: str) -> str:
    return next(advice for words, advice in _ON_HANGS if any(word in verdict for word in words))
