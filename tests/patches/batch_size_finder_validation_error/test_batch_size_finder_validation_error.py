from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("batch-size-finder-validation-error", "2.6.6", alone=True)

test_other_searches_are_unchanged = PROGRAM.unchanged("train", "validate")


def test_other_error_of_the_validation_is_shown():
    stock, shim = PROGRAM.both("error")
    assert stock.observations[0]["error"].startswith("KeyError"), stock
    assert shim.observations[0]["error"] == "ValueError: the step broke", shim


PROOFS = PROGRAM.proofs(
    ends_with("KeyError: 'limit_eval_batches'"),
    recommended="train",
    right=observes({"found": 4, "last": [4, 4, 4], "modes": [True]}),
)
