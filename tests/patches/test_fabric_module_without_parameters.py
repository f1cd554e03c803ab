"""PR 17441: fabric.setup of a module without parameters ends with StopIteration."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run

CASES = ("setup", "setup_stay", "setup_module", "setup_module_stay")
PROOFS = tuple(Proof("fabric-module-without-parameters", ends_with("StopIteration"), case) for case in CASES)


@pytest.mark.parametrize(
    ("version", "case"), [("2.0.0", "setup"), ("2.0.1.post0", "setup_stay"), ("2.0.1.post0", "setup_module_stay")]
)
def test_it_is_set_up(version, case):
    stock = run("fabric_module_without_parameters", Arm("pytorch-lightning", version), case)
    assert not stock.ok and "StopIteration" in stock.observations[0]["error"], stock
    shim = run("fabric_module_without_parameters", Arm("pytorch-lightning", version, shim=True), case)
    fixed = run("fabric_module_without_parameters", Arm("pytorch-lightning", "2.0.2"), case)
    assert shim.ok and fixed.ok, (shim, fixed)
    assert shim.observations == fixed.observations
    assert shim.observations[0]["state"] == ["weight"]
