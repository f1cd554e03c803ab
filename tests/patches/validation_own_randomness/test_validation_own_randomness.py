from tests.equivalence.proof import proofs, sees
from tests.support.programs import Program

NAME = "validation-own-randomness"
PROGRAM = Program(NAME, "2.6.6", alone=True)


def test_shuffled_validation_differs_between_epochs():
    shim = PROGRAM.shim("shuffled").facts
    epochs = {tuple(shim["validated"][begin : begin + 8]) for begin in (0, 8, 16)}
    assert shim["trained"] == shim["alone"] and len(epochs) == 3


test_patch_is_opt_in = PROGRAM.unchanged(toggle="default")

test_evaluation_outside_training_is_unchanged = PROGRAM.unchanged("validate")

PROOFS = proofs(NAME, sees(lambda seen: seen["trained"] != seen["alone"]), recommended="generator")
