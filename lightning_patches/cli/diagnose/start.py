"""Find logs that end while ranks join, since the program may hang at its start.

Rank zero logs a line when all ranks are registered. If the program mutes that line, other lines show that it continued:
lines after all ranks have joined, or lines about steps and losses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from lightning_patches.cli.diagnose.lines import Line
from lightning_patches.ranks.hang._settings import WATCHED

_JOINS = re.compile(
    r"initializing (?:distributed|ddp): GLOBAL_RANK: (\d{1,6}), MEMBER: \d{1,6}/(\d{1,6})", re.IGNORECASE
)
_CONTINUED = re.compile(
    r"All distributed processes registered|LOCAL_RANK: |Epoch \d|Sanity Checking|Trainer\.\w{1,20}` stopped|"
    r"Total params|Trainable params|\b(?:step|epoch|loss|iter(?:ation)?|batch|it/s|acc(?:uracy)?)\b[ =:\[]{1,3}\d"
)
_ERROR = re.compile(r"\b(?!SignalException\b)\w{0,80}(?:Error|Exception)\b|terminated with code (?!-2\b|-15\b)|\bOOM\b")
"""Matches lines of ranks that failed. A signal from the user does not count as a failure."""
_IRRELEVANT = re.compile(
    r"warn|deprecat|^\s|^$|^-+$|KeyboardInterrupt|CANCELLED|Traceback|TIME LIMIT|slurmstepd|srun:|Killed|terminated|"
    r"distributed_backend|GPU available|TPU available|HPU available|IPU available|%|NCCL|\^C|https?://",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class StalledStart:
    """A start at which ranks join, but no line logs that all are registered.

    Args:
        file: the log with the line of the first rank.
        line: number of that line, from 1.
        text: that line.
        ranks: ranks that log that they join.
        world_size: number of ranks.
        is_twice: True if each rank joins twice.
    """

    file: str
    line: int
    text: str
    ranks: tuple[int, ...]
    world_size: int
    is_twice: bool = False


def find(logs: Sequence[tuple[str, Sequence[Line]]]) -> Optional[StalledStart]:
    """Return the start at which the logs of a program end.

    Returns ``None`` if the logs continue, show an error, or have lines of the hang watch.

    Args:
        logs: name and lines of each log. A log may have lines of several ranks.
    """
    ranks: dict[int, StalledStart] = {}
    twice = 0
    for name, lines in logs:
        begun: dict[int, StalledStart] = {}
        before: set[str] = set()
        joined = False
        for line in lines:
            if _ERROR.search(line.text) or WATCHED in line.text:  # reports of the hang watch are more precise
                return None
            joins = _JOINS.search(line.text)
            shape = re.sub(r"\d+", "0", line.text.strip())
            if joins is not None:
                rank, size = int(joins[1]), int(joins[2])
                twice += rank in begun
                begun[rank] = StalledStart(name, line.number, (line.raw or line.text).strip(), (rank,), size)
                joined = True
            elif (
                _CONTINUED.search(line.text)
                or _is_all(begun)
                and shape not in before
                and not _IRRELEVANT.search(line.text)
            ):
                begun, twice = {}, 0
            before.add(shape)
        if joined and not begun:
            return None  # the program continued
        ranks.update(begun)
    if not ranks:
        return None
    first = ranks[min(ranks)]
    same = tuple(sorted(rank for rank, one in ranks.items() if one.world_size == first.world_size))
    if first.world_size < 2:
        return None
    return StalledStart(first.file, first.line, first.text, same, first.world_size, 0 < twice >= len(ranks))


def _is_all(begun: dict[int, StalledStart]) -> bool:
    return bool(begun) and len(begun) >= max(one.world_size for one in begun.values())
