"""Issue 21703: a DataLoader worker that fails while it is being stopped ends a program that has done its work."""

import pytest

from tests.equivalence.proof import Proof, only
from tests.support.variants import Variant, run

PATCH = "worker-shutdown-error"


def crashes(result):
    return not result.ok and "_shutdown_workers" in result.output and "DataLoader worker" in result.output


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.6.6")])
def test_successful_training_ends_as_on_stock(distribution, version):
    stock = run("worker_shutdown_error", Variant(distribution, version))
    assert crashes(stock) and stock.observations == [{"warnings": []}], stock
    shim = run("worker_shutdown_error", Variant(distribution, version, shim=True), toggle=PATCH)
    assert shim.ok, shim
    warned = shim.observations[0].pop("warnings")
    assert len(warned) == 1 and "failed while it was being stopped, after its last batch" in warned[0], warned
    plain = run("worker_shutdown_error", Variant(distribution, version), "plain")
    assert plain.ok and shim.observations == plain.observations, plain
    assert shim.observations[0]["torn_down"] and shim.observations[0]["left"] == 0


def test_workers_without_errors_end_as_on_stock():
    stock = run("worker_shutdown_error", Variant("lightning", "2.6.6"), "healthy")
    shim = run("worker_shutdown_error", Variant("lightning", "2.6.6", shim=True), "healthy", toggle=PATCH)
    assert stock.ok and shim.ok and shim.observations == stock.observations, shim
    assert shim.observations[0]["warnings"] == []


PROOFS = (Proof(PATCH, crashes, recommended="plain", observed=only("weights", "left", "torn_down")),)
