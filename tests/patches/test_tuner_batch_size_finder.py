"""Issue 18394: validation limited to the batch size finder's ``steps_per_trial`` batches."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

SCENARIO, PATCH = "batch_size_finder_val_loader", "batch-size-finder-val-loader"


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.1.0")])
def test_validation_is_whole(distribution, version):
    stock = run(SCENARIO, Arm(distribution, version))
    assert stock.ok, stock
    assert stock.observations[0]["validated"] == [[2, 2]] * 2, stock
    shim = run(SCENARIO, Arm(distribution, version, shim=True), toggle=PATCH)
    assert shim.ok, shim
    assert shim.observations[0]["validated"] == [[8] * 8] * 2, shim
    assert shim.observations == run(SCENARIO, Arm(distribution, "2.1.1")).observations


def test_fixed_release_is_left_alone():
    shim = run(SCENARIO, Arm("lightning", "2.1.1", shim=True), toggle=PATCH)
    assert shim.observations[0]["validated"] == [[8] * 8] * 2, shim
    assert "fix" not in shim.output, shim


PROOFS = (
    Proof(
        "batch-size-finder-val-loader",
        sees(lambda seen: any(sum(sizes) < 64 for sizes in seen["validated"])),
    ),
)
