"""The promise, at the boundaries: the first and last affected release of each case, and those around them.

scripts/equivalence runs every affected release.
"""

import pytest

from lightning_patches import catalog
from tests.equivalence import matrix

RUNNER = matrix.Runner()


def boundaries():
    for cell in matrix.cells(boundaries_only=True):
        # One worker runs all cells of a patch: the official arm is then run once.
        marks = [pytest.mark.xdist_group(cell.proof.patch), pytest.mark.timeout(900)]
        yield pytest.param(cell, id=f"{cell.proof}-{cell.distribution}-{cell.version}", marks=marks)


@pytest.mark.equivalence
@pytest.mark.distributed
@pytest.mark.parametrize("cell", list(boundaries()))
def test_the_arms_agree(cell):
    outcome = matrix.evaluate(cell, RUNNER)
    assert outcome.agrees, f"{cell}: {outcome.arms}\n{outcome.details}"


def test_every_patch_is_proven():
    assert matrix.unproven() == []


def test_boundaries_stand_around_the_affected_range():
    patch = catalog.find("logged-metrics-device")[0]
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
    patch = catalog.find("logged-metrics-device")[0]
    names = matrix.companions(patch, "2.3.3")
    assert patch.name in names
    assert "dataloader-error-unmasked" not in names, "no official release has it"
    never_fixed = catalog.find("dataloader-error-unmasked")[0]
    assert set(names) < set(matrix.companions(never_fixed, "2.3.3"))
