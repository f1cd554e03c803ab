"""PR 19177: a Trainer that was stopped early trains nothing when it is to fit again."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

OLD = [("pytorch-lightning", "2.0.0"), ("lightning", "2.5.0.post0")]


def steps(arm):
    """The Trainer's steps after the first fit, which is stopped at 2, and after the second, which may go on to 10."""
    result = run("fit_resets_should_stop", arm)
    assert result.ok, result
    return result.observations[0]["steps"]


@pytest.mark.parametrize(("distribution", "version"), OLD)
def test_second_fit_goes_on(distribution, version):
    assert steps(Arm(distribution, version)) == [2, 2]
    assert steps(Arm(distribution, version, shim=True)) == [2, 10]


def test_fixed_release_is_left_alone():
    assert steps(Arm("lightning", "2.5.1")) == steps(Arm("lightning", "2.5.1", shim=True)) == [2, 10]


PROOFS = (Proof("fit-resets-should-stop", sees(lambda seen: seen["steps"] == [2, 2])),)
