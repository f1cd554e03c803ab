"""A compiled module that is given to Fabric is asked for its length."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run

SCENARIO = "fabric_compiled_module"
NO_LENGTH = "Net does not support len()"


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [
        ("pytorch-lightning", "2.0.0", ""),
        ("lightning", "2.1.4", ""),
        ("lightning", "2.6.1", "kept"),
        ("lightning", "2.6.6", "kept"),
    ],
)
def test_compiled_module_trains(distribution, version, case):
    stock = run(SCENARIO, Arm(distribution, version), case)
    assert not stock.ok and NO_LENGTH in stock.observations[0]["error"], stock
    plain = run(SCENARIO, Arm(distribution, version), "plain")
    assert plain.ok and plain.observations[0]["module"], plain
    shim = run(SCENARIO, Arm(distribution, version, shim=True), case)
    assert shim.ok and shim.observations == plain.observations, shim


PROOFS = (Proof("fabric-compiled-module", ends_with(NO_LENGTH), case="kept", recommended="plain"),)
