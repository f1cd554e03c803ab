"""PR 19177: a Trainer that was stopped early trains nothing when it is to fit again."""

import pytest

from tests.equivalence.proof import Proof, observes
from tests.support.arms import Arm, run


@pytest.mark.parametrize("version", ["2.0.0", "2.5.0"])
def test_what_the_program_says_itself_is_heard(version):
    def steps(case, shim):
        result = run("fit_resets_should_stop", Arm("pytorch-lightning", version, shim), case)
        assert result.ok, result
        return result.observations[0]

    assert steps("own", True) == steps("own", False)
    stock, shim = steps("before", False)["steps"], steps("before", True)["steps"]
    assert stock[0] == shim[0] < 2 and shim[1] > shim[0]


# The Trainer's steps after the first fit, which is stopped at 2, and after the second, which may go on to 10.
PROOFS = (Proof("fit-resets-should-stop", shows_bug=observes({"steps": [2, 2]}), right=observes({"steps": [2, 10]})),)
