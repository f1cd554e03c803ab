from tests.equivalence.proof import ends_with, observes, proofs

PROOFS = proofs(
    "unpicklable-hyperparameters",
    ends_with("TypeError: cannot pickle '_thread.lock' object"),
    right=observes({"names": ["width"], "width": 3}),
)
