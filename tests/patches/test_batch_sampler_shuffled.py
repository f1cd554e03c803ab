"""Issue 20326: under DDP a batch sampler that shuffles does not, in validation."""

from typing import Any

import pytest

from tests.equivalence.proof import Proof
from tests.support.arms import Arm, run

pytestmark = pytest.mark.distributed
IN_ORDER = [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]]


def seen(arm, case="random"):
    """Items that each rank saw, in the order of its batches."""
    result = run("batch_sampler_shuffled", arm, case)
    assert result.ok, result
    return [rank["seen"] for rank in result.observations]


@pytest.fixture(scope="module")
def official():
    items = seen(Arm("lightning", "2.5.0"))
    assert items != IN_ORDER and len(set(sum(items, []))) == 12
    return items


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.4.0")])
def test_shuffled_like_in_the_fixed_release(distribution, version, official):
    assert seen(Arm(distribution, version)) == IN_ORDER
    assert seen(Arm(distribution, version, shim=True)) == official


def test_what_is_ordered_stays_so():
    assert seen(Arm("lightning", "2.4.0", shim=True), "ordered") == IN_ORDER


def test_first_fixed_release_is_left_alone(official):
    assert seen(Arm("lightning", "2.5.0", shim=True)) == official


def _in_order(result: Any) -> bool:
    return [rank["seen"] for rank in result.observations] == IN_ORDER


PROOFS = (Proof("batch-sampler-shuffled", _in_order, case="random"),)
