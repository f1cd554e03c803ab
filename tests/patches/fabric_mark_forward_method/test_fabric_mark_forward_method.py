"""PR 19690: before 2.3.0 a method cannot be marked to go through the strategy."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.variants import Variant, run

pytestmark = pytest.mark.distributed
ABSENT = "has no attribute 'mark_forward_method'"


def test_works_with_all_patches():
    official = run("fabric_mark_forward_method", Variant("lightning", "2.3.0"))
    result = run("fabric_mark_forward_method", Variant("lightning", "2.2.5", shim=True))
    assert result.ok and _in_step(result) and result.observations == official.observations, result


def _in_step(result):
    first, second = result.observations
    refusals = ["ValueError", "AttributeError", "AttributeError", "TypeError", None]
    return first["weights"] == second["weights"] and first["refusals"] == refusals


PROOFS = (Proof("fabric-mark-forward-method", ends_with(ABSENT), right=_in_step),)
