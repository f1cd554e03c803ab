import pytest

from tests.support.programs import Program, only

PROGRAM = Program("worker-shutdown-error", "2.6.6", alone=True)


def crashes(result):
    return not result.ok and "_shutdown_workers" in result.output and "DataLoader worker" in result.output


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_successful_training_ends_as_on_stock(version):
    stock = PROGRAM.stock(version=version)
    assert crashes(stock) and stock.observations == [{"warnings": []}], stock
    shim = PROGRAM.shim(version=version)
    assert shim.ok, shim
    warned = shim.observations[0].pop("warnings")
    assert len(warned) == 1 and "failed while it was being stopped, after its last batch" in warned[0], warned
    plain = PROGRAM.stock("plain", version)
    assert plain.ok and shim.observations == plain.observations, plain
    assert shim.observations[0]["torn_down"] and shim.observations[0]["left"] == 0


test_workers_without_errors_end_as_on_stock = PROGRAM.unchanged("healthy")

PROOFS = PROGRAM.proofs(crashes, recommended="plain", observed=only("weights", "left", "torn_down"))
