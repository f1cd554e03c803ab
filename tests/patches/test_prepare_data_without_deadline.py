"""PR 19448: work of one rank that takes longer than the process group's timeout ends the others."""

import pytest

from tests.equivalence.proof import Proof
from tests.support.arms import Arm, run

pytestmark = pytest.mark.distributed
PATCH = "prepare-data-without-deadline"
EXPECTED = {
    "module": [{"worked": [0], "steps": 4}, {"worked": [], "steps": 4}],
    "datamodule": [{"worked": [0], "steps": 4}, {"worked": [], "steps": 4}],
    "quick": [{"worked": [], "steps": 4}, {"worked": [], "steps": 4}],
    "fabric": [{"first": True, "steps": 2}, {"first": False, "steps": 2}],
}


def times_out(result):
    return not result.ok and "imed out" in result.output


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("pytorch-lightning", "2.0.0", "module"), ("lightning", "2.2.5", "datamodule"), ("lightning", "2.2.5", "fabric")],
)
def test_ranks_wait(distribution, version, case):
    stock = run("prepare_data_without_deadline", Arm(distribution, version), case)
    assert times_out(stock), stock
    shim = run("prepare_data_without_deadline", Arm(distribution, version, shim=True), case, toggle=PATCH)
    assert shim.ok and shim.observations == EXPECTED[case], shim


def test_nothing_to_prepare_is_as_before():
    stock = run("prepare_data_without_deadline", Arm("lightning", "2.2.5"), "quick")
    shim = run("prepare_data_without_deadline", Arm("lightning", "2.2.5", shim=True), "quick", toggle=PATCH)
    assert stock.ok and shim.ok and stock.observations == shim.observations == EXPECTED["quick"], shim


PROOFS = (
    Proof(PATCH, times_out, case="module"),
    Proof(PATCH, times_out, case="fabric", since="2.1.0"),
)
