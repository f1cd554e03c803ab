from tests.support.programs import Program, sees

PROGRAM = Program("validation-own-randomness", "2.6.6", alone=True)


def test_shuffled_validation_differs_between_epochs():
    shim = PROGRAM.shim("shuffled").facts
    epochs = {tuple(shim["validated"][begin : begin + 8]) for begin in (0, 8, 16)}
    assert shim["trained"] == shim["alone"] and len(epochs) == 3


test_evaluation_outside_training_is_unchanged = PROGRAM.unchanged("validate")

PROOFS = PROGRAM.proofs(sees(lambda seen: seen["trained"] != seen["alone"]), recommended="generator")
