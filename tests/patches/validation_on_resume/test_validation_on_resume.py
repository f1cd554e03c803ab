"""Issues 19549, 20277 and 20288: a run is resumed from a checkpoint that was saved at the end of a validation."""

import pytest

from tests.differential.trial import difference
from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


def seen(version, case, shim):
    result = run("validation_on_resume", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.4.0"])
@pytest.mark.parametrize("case", ["start", "early", "epoch"])
def test_no_validation_is_lost(version, case):
    """It was not over when the checkpoint was saved, or none is due."""
    assert seen(version, case, shim=True) == seen(version, case, shim=False)


def shows_bug(observed):
    return observed["resumed"]["seen"][:2] == ["validation", "validate 0"]


def is_right(observed):
    """What the resumed run does is the end of what the whole one did, to the bit of the weights."""
    whole, resumed = observed["whole"], observed["resumed"]
    return resumed["seen"] == whole["seen"][-len(resumed["seen"]) :] and resumed["weights"] == whole["weights"]


def test_a_check_of_the_programs_own_on_the_loop_stays():
    assert not difference("own_check", "2.2.5", "validation-on-resume")


PROOFS = (
    *(
        Proof("validation-on-resume", sees(shows_bug), case=case, right=sees(is_right))
        for case in ("", "end", "accumulate", "streams", "loaders", "steps")
    ),
    Proof(
        "validation-on-resume",
        sees(lambda observed: observed["resumed"]["best"] == [(4.0).hex()]),
        case="best",
        right=sees(lambda observed: observed["resumed"]["best"] == [(9.0).hex()]),
    ),
    Proof("validation-on-resume", sees(shows_bug), case="other"),
)
