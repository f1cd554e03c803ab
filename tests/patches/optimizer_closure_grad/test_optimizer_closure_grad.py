from tests.differential.trial import difference
from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("optimizer-closure-grad", "2.0.0")

test_custom_backward_without_gradients_works = PROGRAM.unchanged(
    "own", check=sees(lambda seen: seen["with_gradients"] is False)
)


def test_overridden_trainer_properties_are_not_read():
    assert not difference("callers", "2.0.6", "optimizer-closure-grad", "properties")


PROOFS = PROGRAM.proofs(ends_with("element 0 of tensors does not require grad"))
