"""PR 20403: validate, test and predict leave the callbacks without the state that their checkpoint has."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

NAME = "callback-state-in-evaluation"


def observed(arm, case):
    result = run("callback_state_in_evaluation", arm, case, toggle=NAME)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(
    ("distribution", "version", "case", "without"),
    [
        ("pytorch-lightning", "2.0.0", "validate", 0),
        ("lightning", "2.4.0", "test", 0),
        ("lightning", "2.4.0", "predict", 0),
        ("lightning", "2.4.0", "fitted", 3),
    ],
)
def test_the_state_is_that_of_the_checkpoint(distribution, version, case, without):
    assert observed(Arm(distribution, version), case)["evaluated_with"] == without
    shim = observed(Arm(distribution, version, shim=True), case)
    assert shim["evaluated_with"] == 2
    assert shim == observed(Arm(distribution, "2.5.0"), case)


PROOFS = tuple(
    Proof(NAME, sees(lambda seen: seen["evaluated_with"] != 2), case=case)
    for case in ("validate", "test", "predict", "fitted")
)
