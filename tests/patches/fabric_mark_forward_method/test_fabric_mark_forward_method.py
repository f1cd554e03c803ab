import pytest

from tests.support.programs import Program, ends_with

PROGRAM = Program("fabric-mark-forward-method", "2.3.0")

pytestmark = pytest.mark.distributed
ABSENT = "has no attribute 'mark_forward_method'"


def test_works_with_all_patches():
    official = PROGRAM.stock()
    result = PROGRAM.shim(version="2.2.5")
    assert result.ok and _in_step(result) and result.observations == official.observations, result


def _in_step(result):
    first, second = result.observations
    refusals = ["ValueError", "AttributeError", "AttributeError", "TypeError", None]
    return first["weights"] == second["weights"] and first["refusals"] == refusals


PROOFS = PROGRAM.proofs(ends_with(ABSENT), right=_in_step)
