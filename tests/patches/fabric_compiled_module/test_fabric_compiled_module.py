"""Fabric calls ``len`` on a compiled module."""

import pytest

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run

SCENARIO = "fabric_compiled_module"
NO_LENGTH = "Net does not support len()"


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [
        ("pytorch-lightning", "2.0.0", ""),
        ("lightning", "2.1.4", ""),
    ],
)
def test_compiled_module_trains(distribution, version, case):
    stock = run(SCENARIO, Variant(distribution, version), case)
    assert not stock.ok and NO_LENGTH in stock.observations[0]["error"], stock
    plain = run(SCENARIO, Variant(distribution, version), "plain")
    assert plain.ok and plain.observations[0]["module"], plain
    shim = run(SCENARIO, Variant(distribution, version, shim=True), case)
    assert shim.ok and shim.observations == plain.observations, shim


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_strategy_may_return_an_object_that_is_not_a_module(version):
    stock, shim = (run(SCENARIO, Variant("lightning", version, shim=shim), "function") for shim in (False, True))
    assert stock.ok and stock.observations[0]["module"], stock
    assert shim.ok and shim.observations == stock.observations, shim


PROOFS = (
    Proof(
        "fabric-compiled-module",
        ends_with(NO_LENGTH),
        case="kept",
        recommended="plain",
        right=sees(lambda seen: bool(seen["module"])),
    ),
)
