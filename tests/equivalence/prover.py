"""Outcomes of cells, each of a run, or of one on another release that is the same source in all that was executed."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any, Optional

from tests.equivalence import matrix, same_code
from tests.equivalence.matrix import Cell, Outcome, Runner
from tests.equivalence.proof import Proof
from tests.support.arms import Arm, Result
from tests.support.executed import Executed

import _diffs  # isort: skip  (tests.support.arms has put scripts/ on the path)


class Prover:
    """Proves cells, and remembers what stands for what. Cells of one case are proven one at a time.

    In each distribution the first affected release that is asked for is run, as a spot check on the claim that both
    are the same source.

    Args:
        runner: runs arms, and notes what they execute.
        known: outcomes of an earlier record, by key; stock and reference are not run again where they would do the
            same.
    """

    def __init__(self, runner: Runner, known: Optional[dict[str, dict[str, Any]]] = None) -> None:
        self.runner = runner
        self._known = known or {}
        self._standing: defaultdict[Proof, list[_Standing]] = defaultdict(list)
        self._locks: defaultdict[Proof, threading.Lock] = defaultdict(threading.Lock)

    def __call__(self, cell: Cell) -> Outcome:
        with self._locks[cell.proof]:
            standing = self._standing[cell.proof]
            if cell.role != "affected" or any(_place(s.cell) == _place(cell) for s in standing):
                for one in standing:
                    if one.covers(cell):
                        return one.outcome_of(cell)
            noting = _Noting(self.runner)
            outcome = matrix.evaluate(cell, noting, self._known.get(matrix.key(cell)))
            executed = noting.executed_on(cell)
            if outcome.agrees and executed is not None and "stock" in noting.roles(cell):
                standing.append(_Standing(cell, outcome, executed, noting.executed_elsewhere(cell)))
            return outcome


def _place(cell: Cell) -> tuple[str, str]:
    return cell.distribution, cell.role


class _Noting:
    """A runner that remembers what its arms executed."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._seen: list[tuple[Arm, Optional[Executed]]] = []

    def __call__(self, proof: Proof, arm: Arm, *arguments: Any, **options: Any) -> Result:
        result = self._runner(proof, arm, *arguments, **options)
        self._seen.append((arm, result.executed))
        return result

    def roles(self, cell: Cell) -> set[str]:
        """``"stock"``, if the stock release of the cell was run."""
        return {"stock" for arm, _ in self._seen if arm == Arm(cell.distribution, cell.version)}

    def executed_on(self, cell: Cell) -> Optional[Executed]:
        """By all arms of the cell's own release; ``None`` if one of them left no word."""
        return _union([executed for arm, executed in self._seen if arm.version == cell.version])

    def executed_elsewhere(self, cell: Cell) -> dict[str, Optional[Executed]]:
        """By the official release, if it took part; by version."""
        versions = {arm.version for arm, _ in self._seen} - {cell.version}
        return {version: _union([e for arm, e in self._seen if arm.version == version]) for version in versions}


def _union(parts: list[Optional[Executed]]) -> Optional[Executed]:
    known = [part for part in parts if part is not None]
    return frozenset().union(*known) if known and len(known) == len(parts) else None


@dataclass(frozen=True)
class _Standing:
    """A cell that was run, agreed, and may stand for others.

    Args:
        cell: the cell.
        outcome: what came of it.
        executed: on its own release.
        elsewhere: on the official release, by version.
    """

    cell: Cell
    outcome: Outcome
    executed: Executed
    elsewhere: dict[str, Optional[Executed]]

    def covers(self, cell: Cell) -> bool:
        """Whether the same would be seen of another cell of the case."""
        if (cell.role, matrix.subject(cell)) != (self.cell.role, self.outcome.subject):
            return False
        mine, other = (self.cell.distribution, self.cell.version), (cell.distribution, cell.version)
        if _diffs_of(self.cell) != _diffs_of(cell) or not same_code.same(mine, other, self.executed):
            return False
        return all(
            executed is not None and same_code.same((mine[0], version), (other[0], version), executed)
            for version, executed in self.elsewhere.items()
        )

    def outcome_of(self, cell: Cell) -> Outcome:
        mine = self.cell.distribution
        return replace(
            self.outcome,
            distribution=cell.distribution,
            version=cell.version,
            reference=self.outcome.reference.replace(f"{mine} ", f"{cell.distribution} ").replace(
                f"{cell.distribution} {self.cell.version}", f"{cell.distribution} {cell.version}"
            ),
            by=f"{mine} {self.cell.version}",
        )


def _diffs_of(cell: Cell) -> list[str]:
    """The diffs that the cell's fork is made with."""
    if cell.role != "affected":
        return []
    with_diffs = {diff.name for diff in _diffs.series()}
    names = [name for name in matrix.taking_part(cell) if name in with_diffs]
    return [diff.path.name for diff in _diffs.selected(cell.version, names)]
