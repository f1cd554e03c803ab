"""PR 18928: a precision on the command line conflicts with a Fabric() that gives none."""

import pytest

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.variants import Variant, run

MESSAGE = "Your code has `Fabric(precision=None, ...)` but it conflicts with the value"
PROOFS = (
    Proof(
        "fabric-precision-from-cli",
        ends_with(MESSAGE),
        "script_has_none",
        right=observes({"dtype": "torch.float64"}),
    ),
)


@pytest.mark.parametrize("case", ["script_agrees", "script_differs", "not_given"])
def test_other_cases_equal_the_fixed_release(case):
    shim = run("fabric_precision_from_cli", Variant("lightning", "2.1.1", shim=True), case)
    fixed = run("fabric_precision_from_cli", Variant("lightning", "2.1.2"), case)
    assert shim.ok == fixed.ok == (case != "script_differs"), (shim, fixed)
    assert shim.observations == fixed.observations
