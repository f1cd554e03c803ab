"""Releases that stand for each other: what makes two of them the same, and what does not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.equivalence import matrix, prover, same_code
from tests.support.arms import Arm, Result, run

SOURCE = '''
import torch
from typing import Any
LIMIT = 3

def helper(x: Any) -> int:
    """Help."""
    return x + LIMIT

class Loop:
    """A loop."""
    def run(self): return helper(1)

class Fetcher(Loop):
    pass

def unused(): return 1
'''
EXECUTED = frozenset({("pytorch/loop.py", "helper"), ("pytorch/loop.py", "Loop.run"), ("pytorch/loop.py", "<module>")})
IMPORTED = frozenset({("pytorch/loop.py", "<module>")})


def digest(directory: Path, source: str, executed=EXECUTED, root: str = "lightning/pytorch") -> str:
    target = directory / str(len(list(directory.iterdir())))
    (target / root).mkdir(parents=True)
    (target / root / "loop.py").write_text(source)
    return same_code.digest_below(target, executed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Help.", "Helps."),
        ("x: Any", "x"),
        ("def helper", "# a comment\ndef helper"),
        ("def unused(): return 1", "def unused(): return 2"),
        ("def unused(): return 1", ""),
        ("from typing import Any", "from typing import Any, Optional"),
    ],
)
def test_what_changes_nothing_that_runs(tmp_path: Path, old: str, new: str) -> None:
    assert old in SOURCE
    assert digest(tmp_path, SOURCE) == digest(tmp_path, SOURCE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x + LIMIT", "x - LIMIT"),
        ("LIMIT = 3", "LIMIT = 4"),
        ("class Fetcher(Loop):\n    pass", "class Fetcher(Loop):\n    def run(self): return 2"),
        ("class Fetcher(Loop)", "class Fetcher(dict)"),
        ("return helper(1)", "return helper(2)"),
        ("import torch", "import numpy as torch"),
    ],
)
def test_what_changes_something_that_runs(tmp_path: Path, old: str, new: str) -> None:
    assert old in SOURCE
    assert digest(tmp_path, SOURCE) != digest(tmp_path, SOURCE.replace(old, new))


def test_of_a_module_that_was_only_imported_methods_count(tmp_path: Path) -> None:
    changed = SOURCE.replace("x + LIMIT", "x - LIMIT").replace("LIMIT = 3", "LIMIT = 4")
    assert digest(tmp_path, SOURCE, IMPORTED) == digest(tmp_path, changed, IMPORTED)
    overriding = SOURCE.replace("    pass", "    def run(self): return 2")
    assert digest(tmp_path, SOURCE, IMPORTED) != digest(tmp_path, overriding, IMPORTED)


def test_both_distributions_are_the_same_but_for_the_name(tmp_path: Path) -> None:
    mine, theirs = SOURCE + "import lightning.fabric\n", SOURCE + "import lightning_fabric\n"
    assert digest(tmp_path, mine) == digest(tmp_path, theirs, root="pytorch_lightning")


@pytest.mark.distributed
def test_the_releases_themselves() -> None:
    """What a real run executes is noted in every rank, and tells releases apart that differ in it."""
    result = run("sampler_set_epoch", Arm("lightning", "2.2.5"), note_executed=True)
    assert result.ok and len(result.observations) == 2, result
    executed = result.executed
    assert executed is not None
    assert {
        ("pytorch/trainer/trainer.py", "Trainer.fit"),
        ("pytorch/strategies/ddp.py", "DDPStrategy.setup"),
    } <= executed
    seen = {
        (distribution, version): same_code.digest(distribution, version, executed)
        for distribution in ("lightning", "pytorch-lightning")
        for version in ("2.2.4", "2.2.5", "2.3.0")
    }
    assert len({digest for (_, version), digest in seen.items() if version != "2.3.0"}) == 1
    assert seen["lightning", "2.3.0"] == seen["pytorch-lightning", "2.3.0"] != seen["lightning", "2.2.5"]


# -------------------------------------------------------------------- the prover


class Fake:
    """Stands for the runner and for the judgement: notes which releases ran."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, executed: object) -> None:
        self.ran: list[tuple[str, str]] = []
        self.agrees = True
        monkeypatch.setattr(matrix, "evaluate", self.evaluate)
        self.executed = executed

    def __call__(self, proof, arm, *arguments, **options) -> Result:
        return Result(0, "", [{}], self.executed)

    def evaluate(self, cell, runner, known=None) -> matrix.Outcome:
        self.ran.append((cell.distribution, cell.version))
        runner(cell.proof, Arm(cell.distribution, cell.version))
        runner(cell.proof, Arm(cell.distribution, "2.5.1"))
        outcome = matrix.Outcome(cell.proof.patch, cell.proof.case, cell.distribution, cell.version, cell.role)
        outcome.subject, outcome.agrees = matrix.subject(cell), self.agrees
        outcome.reference = f"{cell.distribution} 2.5.1"
        return outcome


@pytest.fixture
def cells() -> dict[tuple[str, str], matrix.Cell]:
    found = matrix.cells(["fit-resets-should-stop"])
    return {(cell.distribution, cell.version): cell for cell in found if cell.role == "affected"}


EXECUTED_THERE = frozenset({("pytorch/trainer/trainer.py", "Trainer.fit")})


def test_a_release_stands_for_one_of_the_same_code(monkeypatch, cells) -> None:
    fake = Fake(monkeypatch, EXECUTED_THERE)
    prove = prover.Prover(fake)
    first = prove(cells["lightning", "2.3.3"])
    second = prove(cells["lightning", "2.3.0"])
    assert (first.by, second.by, second.version) == ("", "lightning 2.3.3", "2.3.0")
    other = prove(cells["pytorch-lightning", "2.3.3"])
    assert other.by == "", "the spot check of the other distribution"
    assert prove(cells["pytorch-lightning", "2.3.0"]).reference == "pytorch-lightning 2.5.1"
    assert fake.ran == [("lightning", "2.3.3"), ("pytorch-lightning", "2.3.3")]


def test_another_code_is_run(monkeypatch, cells) -> None:
    fake = Fake(monkeypatch, EXECUTED_THERE)
    prove = prover.Prover(fake)
    prove(cells["lightning", "2.3.3"])
    assert prove(cells["lightning", "2.1.0"]).by == ""
    assert len(fake.ran) == 2


@pytest.mark.parametrize("why", ["disagrees", "no word of what was executed"])
def test_what_stands_for_nothing(monkeypatch, cells, why: str) -> None:
    fake = Fake(monkeypatch, None if why.startswith("no") else EXECUTED_THERE)
    fake.agrees = why != "disagrees"
    prove = prover.Prover(fake)
    prove(cells["lightning", "2.3.3"])
    assert prove(cells["lightning", "2.3.0"]).by == ""
    assert len(fake.ran) == 2


# -------------------------------------------------------------------- what is kept


@pytest.mark.distributed
def test_stock_and_reference_are_not_run_again() -> None:
    (cell,) = [c for c in matrix.cells(["fit-resets-should-stop"], "lightning") if c.version == "2.5.0.post0"]
    first = matrix.Runner()
    outcome = matrix.evaluate(cell, first)
    assert outcome.agrees and first.runs == 4, outcome
    again = matrix.Runner()
    kept = matrix.evaluate(cell, again, outcome.as_dict())
    assert again.runs == 2
    assert dataclasses.replace(kept, arms=dict(sorted(kept.arms.items()))) == dataclasses.replace(
        outcome, arms=dict(sorted(outcome.arms.items()))
    )
    changed = {**outcome.as_dict(), "expected": "what nothing observes"}
    full = matrix.Runner()
    assert matrix.evaluate(cell, full, changed).agrees, "all arms were run again, and agree"
    assert full.runs == 4


def test_a_proof_holds_until_something_changes() -> None:
    cell = matrix.cells(["fit-resets-should-stop"])[0]
    outcome = {"agrees": True, "subject": matrix.subject(cell)}
    assert matrix.holds(cell, {matrix.key(cell): outcome})
    assert not matrix.holds(cell, {matrix.key(cell): {**outcome, "agrees": False}})
    assert not matrix.holds(cell, {matrix.key(cell): {**outcome, "subject": "another"}})
    assert not matrix.holds(cell, {})
