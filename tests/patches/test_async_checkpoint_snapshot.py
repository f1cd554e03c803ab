"""PR 21079: AsyncCheckpointIO writes what training makes of the weights in the meantime."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.arms import Arm, run


def observed(arm):
    result = run("async_checkpoint_snapshot", arm)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.5.3")])
def test_checkpoint_holds_the_moment_of_saving(distribution, version):
    stock = observed(Arm(distribution, version))
    assert stock["saved"]["weights"] != stock["asked_for"]["weights"], stock
    assert stock["saved"]["momentum"] != stock["asked_for"]["momentum"], stock

    shim = observed(Arm(distribution, version, shim=True))
    assert shim["saved"] == shim["asked_for"] == stock["asked_for"]
    assert shim["tied"] is stock["tied"] is True
    assert shim["norm_version"] == stock["norm_version"] == 2


def test_official_fix_saves_the_same():
    official = observed(Arm("lightning", "2.5.4"))
    assert official["saved"] == official["asked_for"]
    assert observed(Arm("lightning", "2.5.4", shim=True)) == official


PROOFS = (
    Proof(
        "async-checkpoint-snapshot",
        sees(lambda seen: seen["saved"]["weights"] != seen["asked_for"]["weights"]),
        observed=only("asked_for", "saved"),
        note="tied weights and module versions, which the official fix loses",
    ),
)
