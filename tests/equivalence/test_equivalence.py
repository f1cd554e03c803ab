"""The standard tests of every patch, made from its ``PROOFS`` in ``tests/patches``.

At the boundaries, the first and last affected release of each case and those around them: on an affected one stock
shows the bug; shim and fork observe what the fixed release does, or the recommended usage, and are right. Any other has
no bug, and is left alone. ``scripts/prove equivalence`` runs every affected release.
"""

from dataclasses import replace

import pytest

from lightning_patches import patches as catalogue
from tests.equivalence import matrix
from tests.equivalence.prover import Prover
from tests.support.arms import Arm, Result

PROVER = Prover(matrix.Runner(note_executed=True))


def boundaries():
    for cell in matrix.cells(boundaries_only=True):
        # One worker runs all cells of a patch: the official arm is then run once.
        marks = [pytest.mark.xdist_group(cell.proof.patch), pytest.mark.timeout(900)]
        yield pytest.param(cell, id=f"{cell.proof}-{cell.distribution}-{cell.version}", marks=marks)


@pytest.mark.equivalence
@pytest.mark.distributed
@pytest.mark.parametrize("cell", list(boundaries()))
def test_the_arms_agree(cell):
    outcome = PROVER(cell)
    assert outcome.agrees, f"{cell}: {outcome.arms}\n{outcome.details}"


def by_default():
    """Each case of a default patch, in the newest release that it affects."""
    for proof in matrix.proofs():
        cell = matrix.newest_affected(proof)
        if catalogue.find(proof.patch)[0].default and cell is not None and not proof.old_torch:
            yield pytest.param(cell, id=str(proof), marks=[pytest.mark.xdist_group(proof.patch)])


@pytest.mark.equivalence
@pytest.mark.distributed
@pytest.mark.parametrize("cell", list(by_default()))
def test_the_default_set_cures_it_too(cell):
    """The cells above have the patches that their reference has. What all default patches do together is counted by
    ``scripts/prove known-bugs``, case by case and release by release; here in one release."""
    result = PROVER.runner(cell.proof, Arm(cell.distribution, cell.version, shim=True))
    assert result.ok and not cell.proof.shows_bug(result), result


@pytest.mark.parametrize(
    ("stock", "cured", "right", "arms"),
    [
        ([2, 2], [2, 10], True, {"stock": "bug", "official": "right", "shim": "right", "fork": "right"}),
        ([2, 10], [2, 10], True, {"stock": "no bug", "official": "right", "shim": "right", "fork": "right"}),
        ([2, 2], [2, 9], True, {"stock": "bug", "official": "right", "shim": "differs", "fork": "differs"}),
        ([2, 2], [2, 2], True, {"stock": "bug", "official": "right", "shim": "bug", "fork": "bug"}),
        ([2, 2], [2, 10], False, {"stock": "bug", "official": "right", "shim": "differs", "fork": "differs"}),
    ],
)
def test_a_cell_agrees_only_if_stock_shows_the_bug_and_the_cured_runs_are_right(stock, cured, right, arms):
    (proof,) = matrix.proofs(["fit-resets-should-stop"])
    cell = matrix.Cell(replace(proof, right=lambda result: right), "lightning", "2.5.0.post0", "affected")

    def runner(proof, arm, *_, **__):
        steps = [2, 10] if arm.version == "2.5.1" else cured if arm.shim or arm.directory else stock
        return Result(0, "", [{"steps": steps}])

    outcome = matrix.evaluate(cell, runner)
    assert outcome.arms == arms
    assert outcome.agrees is (set(arms.values()) == {"bug", "right"} and arms["shim"] == arms["fork"] == "right")


def test_every_patch_is_proven():
    assert matrix.unproven() == []


def test_boundaries_stand_around_the_affected_range():
    patch = catalogue.find("logged-metrics-device")[0]
    proof = next(proof for proof in matrix.proofs() if proof.patch == patch.name)
    assert [(cell.version, cell.role) for cell in matrix.boundaries(proof, "pytorch-lightning")] == [
        ("2.0.9.post0", "before"),
        ("2.1.0", "affected"),
        ("2.3.3", "affected"),
        ("2.4.0", "fixed"),
        ("2.6.6", "newest"),
    ]
    assert [cell.role for cell in matrix.boundaries(proof, "lightning")] == ["affected", "affected", "fixed", "newest"]
    assert len(matrix.whole(proof, "pytorch-lightning")) == 16 + 3


def test_shim_and_fork_get_the_fixes_that_the_official_release_has():
    patch = catalogue.find("logged-metrics-device")[0]
    names = matrix.companions(patch, "2.3.3")
    assert patch.name in names
    assert "dataloader-error-unmasked" not in names, "no official release has it"
    never_fixed = catalogue.find("dataloader-error-unmasked")[0]
    assert matrix.companions(never_fixed, "2.3.3") == [never_fixed.name]
    sharing = catalogue.find("fabric-submodule-sync")[0]
    assert {sharing.name, "fabric-compiled-module"} <= set(matrix.companions(sharing, "2.2.5")), "both change __init__"
