"""PR 19690: before 2.3.0 a method cannot be marked to go through the strategy."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run

pytestmark = pytest.mark.distributed
ABSENT = "has no attribute 'mark_forward_method'"


def observed(arm):
    # fabric-submodule-sync would average these gradients as well
    result = run("fabric_mark_forward_method", arm, toggle="fabric-mark-forward-method" if arm.shim else None)
    assert result.ok and len(result.observations) == 2, result
    return result.observations


@pytest.fixture(scope="module")
def official():
    ranks = observed(Arm("lightning", "2.3.0"))
    assert ranks[0]["weights"] == ranks[1]["weights"]
    assert ranks[0]["refusals"] == ["ValueError", "AttributeError", "AttributeError", "TypeError", None]
    return ranks


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.2.5")])
def test_marked_method_goes_through_ddp(distribution, version, official):
    stock = run("fabric_mark_forward_method", Arm(distribution, version))
    assert not stock.ok and ABSENT in stock.output, stock
    assert observed(Arm(distribution, version, shim=True)) == official


def test_with_all_other_patches(official):
    result = run("fabric_mark_forward_method", Arm("lightning", "2.2.5", shim=True))
    assert result.ok and result.observations == official, result


PROOFS = (Proof("fabric-mark-forward-method", ends_with(ABSENT)),)
