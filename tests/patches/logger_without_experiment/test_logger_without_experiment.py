from tests.differential.trial import difference
from tests.equivalence.proof import ends_with, observes, proofs


def test_overridden_trainer_properties_are_not_read():
    assert not difference("callers", "2.0.6", "logger-without-experiment", "properties")


PROOFS = proofs(
    "logger-without-experiment",
    ends_with("object has no attribute 'experiment'"),
    right=observes({"logged": [["epoch", "index"]], "has": False}),
)
