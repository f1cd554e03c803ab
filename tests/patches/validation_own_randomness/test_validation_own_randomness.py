"""Issue 16827: a validation changes the order of the training data."""

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

NAME = "validation-own-randomness"


def seen(distribution, version, case="", toggle=None):
    variant = Variant(distribution, version, shim=toggle is not None)
    result = run("validation_own_randomness", variant, case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


def test_shuffled_validation_differs_between_epochs():
    shim = seen("lightning", "2.6.6", "shuffled", NAME)
    epochs = {tuple(shim["validated"][begin : begin + 8]) for begin in (0, 8, 16)}
    assert shim["trained"] == shim["alone"] and len(epochs) == 3


def test_patch_is_opt_in():
    assert seen("lightning", "2.6.6") == seen("lightning", "2.6.6", toggle="default")


def test_evaluation_outside_training_is_unchanged():
    assert seen("lightning", "2.6.6", "validate") == seen("lightning", "2.6.6", "validate", NAME)


PROOFS = (Proof(NAME, sees(lambda seen: seen["trained"] != seen["alone"]), recommended="generator"),)
