"""PR 19448: work of one rank that takes longer than the process group's timeout ends the others."""

import pytest

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run

pytestmark = pytest.mark.distributed
PATCH = "prepare-data-without-deadline"
EXPECTED = {
    "module": [{"worked": ["module"], "steps": 4}, {"worked": [], "steps": 4}],
    "datamodule": [{"worked": ["datamodule"], "steps": 4}, {"worked": [], "steps": 4}],
    "both": [{"worked": ["datamodule", "module"], "steps": 4}, {"worked": [], "steps": 4}],
    "quick": [{"worked": [], "steps": 4}, {"worked": [], "steps": 4}],
    "fabric": [{"first": True, "steps": 2}, {"first": False, "steps": 2}],
}


def times_out(result):
    return not result.ok and "imed out" in result.output


@pytest.mark.parametrize(
    ("distribution", "version", "case", "reported"),
    [
        ("pytorch-lightning", "2.0.0", "datamodule", "timed out after 4000ms while trying to connect"),
        ("lightning", "2.2.5", "module", "Timed out waiting 4000ms"),
    ],
)
def test_ranks_wait(distribution, version, case, reported):
    stock = run("prepare_data_without_deadline", Variant(distribution, version), case)
    assert not stock.ok and reported in stock.output, stock
    shim = run("prepare_data_without_deadline", Variant(distribution, version, shim=True), case, toggle=PATCH)
    assert shim.ok and shim.observations == EXPECTED[case], shim


def test_opt_in():
    default = run("prepare_data_without_deadline", Variant("lightning", "2.2.5", shim=True), "module")
    assert times_out(default), default


@pytest.mark.parametrize("version", ["2.1.4", "2.2.5"])
def test_module_without_prepare_data_is_unchanged(version):
    stock = run("prepare_data_without_deadline", Variant("lightning", version), "quick")
    shim = run("prepare_data_without_deadline", Variant("lightning", version, shim=True), "quick", toggle=PATCH)
    assert stock.ok and shim.ok and stock.observations == shim.observations == EXPECTED["quick"], shim


PROOFS = (
    Proof(PATCH, times_out, case="both", right=observes(*EXPECTED["both"])),
    Proof(PATCH, times_out, case="fabric", since="2.1.0", right=observes(*EXPECTED["fabric"])),
)
