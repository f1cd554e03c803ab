from tests.equivalence.proof import Proof, ends_with, observes

PROOFS = (
    Proof(
        "unpicklable-hyperparameters",
        ends_with("TypeError: cannot pickle '_thread.lock' object"),
        right=observes({"names": ["width"], "width": 3}),
    ),
)
