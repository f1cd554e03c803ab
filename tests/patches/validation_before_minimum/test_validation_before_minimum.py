from tests.support.programs import Program, observes, sees

PROGRAM = Program("validation-before-minimum", "1.8.6")


def test_interval_of_validation_is_kept_before_the_minimum():
    assert PROGRAM.stock("interval").facts["validations"] == list(range(2, 13))
    assert PROGRAM.shim("interval").facts == {"validations": [2, 4, 6, 8, 10, 12], "steps": 12, "stop": True}


test_stop_after_the_minimum_validates_at_once = PROGRAM.unchanged("late")


def _after_each_batch(seen):
    return seen["validations"] == list(range(2, 13))


PROOFS = PROGRAM.proofs(
    sees(_after_each_batch), "", "steps", right=observes({"validations": [4, 8, 12], "steps": 12, "stop": True})
)
