"""PR 18093: a logger without an experiment ends the run."""

from tests.equivalence.proof import Proof, ends_with, observes

PROOFS = (
    Proof(
        "logger-without-experiment",
        ends_with("object has no attribute 'experiment'"),
        right=observes({"logged": [["epoch", "index"]], "has": False}),
    ),
)
