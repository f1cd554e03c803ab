import pytest

from tests.support.programs import Program, observes

pytestmark = pytest.mark.distributed
PROGRAM = Program("prepare-data-without-deadline", "2.2.5", alone=True)
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
    ("version", "case", "reported"),
    [
        ("2.0.0", "datamodule", "timed out after 4000ms while trying to connect"),
        ("2.2.5", "module", "Timed out waiting 4000ms"),
    ],
)
def test_ranks_wait_for_prepare_data_longer_than_the_timeout(version, case, reported):
    stock = PROGRAM.stock(case, version)
    assert not stock.ok and reported in stock.output, stock
    shim = PROGRAM.shim(case, version)
    assert shim.ok and shim.observations == EXPECTED[case], shim


test_module_without_prepare_data_is_unchanged = PROGRAM.unchanged(
    "quick", on=("2.1.4", "2.2.5"), check=observes(*EXPECTED["quick"])
)

PROOFS = (
    PROGRAM.proof(times_out, case="both", right=observes(*EXPECTED["both"])),
    PROGRAM.proof(times_out, case="fabric", since="2.1.0", right=observes(*EXPECTED["fabric"])),
)
