"""PR 18218: a rank that dies leaves the others waiting."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

ENDS = {"ended": True, "well": False, "done": False}
DONE = {"ended": True, "well": True, "done": True}


def result(version, case, toggle=None):
    variant = Variant("pytorch-lightning", version, shim=toggle is not None)
    found = run("dead_rank_ends_job", variant, case, toggle=toggle, timeout=300)
    assert found.ok, found
    return found


def test_killed_rank_ends_the_job():
    shim = result("2.0.9", "killed", "dead-rank-ends-job")
    assert shim.observations == [ENDS] and "ended with status -9" in shim.output


@pytest.mark.parametrize("toggle", ["default", "dead-rank-ends-job"])
def test_job_without_a_dead_rank_is_unchanged(toggle):
    assert result("2.0.9", "well", toggle).observations == [DONE]


def test_patch_is_opt_in_since_it_ends_a_working_rank_zero():
    assert result("2.0.9", "late", "default").observations == [DONE]
    assert result("2.0.9", "late", "dead-rank-ends-job").observations == [ENDS]


PROOFS = tuple(Proof("dead-rank-ends-job", sees(lambda seen: not seen["ended"]), case=c) for c in ("trainer", "fabric"))
