from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("predict-with-iterator", "2.4.0", "pytorch-lightning")


def test_error_of_the_same_type_in_the_step_is_raised():
    result = PROGRAM.shim("own")
    assert ends_with("'undefined'")(result), result


PROOFS = PROGRAM.proofs(
    ends_with("cannot access local variable 'any_on_epoch'"),
    right=observes({"returned": None, "seen": 3}),
    since="2.1.0",
)
