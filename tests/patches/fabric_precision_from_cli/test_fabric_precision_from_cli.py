import pytest

from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("fabric-precision-from-cli", "2.1.1")

MESSAGE = "Your code has `Fabric(precision=None, ...)` but it conflicts with the value"
PROOFS = PROGRAM.proofs(ends_with(MESSAGE), "script_has_none", right=observes({"dtype": "torch.float64"}))


@pytest.mark.parametrize("case", ["script_agrees", "script_differs", "not_given"])
def test_other_cases_equal_the_fixed_release(case):
    shim = PROGRAM.shim(case)
    fixed = PROGRAM.stock(case, "2.1.2")
    assert shim.ok == fixed.ok == (case != "script_differs"), (shim, fixed)
    assert shim.observations == fixed.observations
