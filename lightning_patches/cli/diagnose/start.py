"""The start of several ranks in a log. One that ends while they join may be of a program that stood still there.

Rank zero says when all of them are registered, so only a log in which it has begun to join, and did not get that far,
tells anything: the log of any other rank ends there in every healthy program.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from lightning_patches.cli.diagnose.log import Text
from lightning_patches.ranks.hang._settings import WATCHED

_JOINS = re.compile(r"Initializing distributed: GLOBAL_RANK: (\d+), MEMBER: \d+/(\d+)")
_BEYOND = re.compile(
    r"All distributed processes registered|LOCAL_RANK: |Epoch \d|Sanity Checking|Trainer\.\w+` stopped"
)
_ERROR = re.compile(r"\b(?!SignalException\b)\w*(?:Error|Exception)\b|terminated with code (?!-2\b|-15\b)|\bOOM\b")
"""What ended a rank, other than somebody who would not wait any longer."""
_NAMED = 8
"""Missing ranks that are named one by one."""


@dataclass(frozen=True)
class Start:
    """Ranks that join, and no word that all are there.

    Args:
        file: the log in which rank zero says so.
        line: number of that line, from 1.
        text: that line.
        ranks: those that say so.
        world_size: how many there are.
    """

    file: str
    line: int
    text: str
    ranks: tuple[int, ...]
    world_size: int

    @property
    def words(self) -> str:
        missing = [str(rank) for rank in range(self.world_size) if rank not in self.ranks]
        if not missing:
            said = f"All {self.world_size} ranks say that they join."
        elif len(missing) <= _NAMED:
            ranks = f"rank {missing[0]}" if len(missing) == 1 else f"ranks {', '.join(missing)}"
            said = f"Nothing shows that {ranks} of {self.world_size} joined."
        else:
            said = f"Only {len(self.ranks)} of {self.world_size} ranks say that they join."
        return f"the log ends before rank zero says that all processes are registered. {said}"

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "ranks": list(self.ranks), "words": self.words}


def standing(logs: Sequence[tuple[str, Text]]) -> Optional[Start]:
    """The start at which the logs of a program end; ``None`` if they get further, tell of an error, or are of a
    program with the hang watch.

    Args:
        logs: names and texts, of one rank or of several each.
    """
    ranks: dict[int, tuple[str, int, str, int]] = {}
    for name, text in logs:
        begun: dict[int, tuple[str, int, str, int]] = {}
        for number, line in enumerate(text.tail.split("\n"), text.tail_line):
            if _ERROR.search(line) or WATCHED in line:  # the hang watch's own reports are in that log and say more
                return None
            joins = _JOINS.search(line)
            if joins is not None:
                begun[int(joins[1])] = name, number, line.strip(), int(joins[2])
            elif _BEYOND.search(line):
                begun.clear()
        ranks.update(begun)
    if 0 not in ranks:
        return None
    file, number, line, world_size = ranks[0]
    same = tuple(sorted(rank for rank, (*_, size) in ranks.items() if size == world_size))
    return Start(file, number, line, same, world_size) if world_size > 1 else None
