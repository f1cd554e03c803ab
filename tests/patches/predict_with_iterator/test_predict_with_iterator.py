"""PR 20484: predict without predictions to return, and with a step that takes the iterator, ends in an error."""

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.variants import Variant, run


def test_error_of_the_same_type_in_the_step_is_raised():
    result = run("predict_with_iterator", Variant("pytorch-lightning", "2.4.0", shim=True), "own")
    assert ends_with("'undefined'")(result), result


PROOFS = (
    Proof(
        "predict-with-iterator",
        ends_with("cannot access local variable 'any_on_epoch'"),
        right=observes({"returned": None, "seen": 3}),
        since="2.1.0",
    ),
)
