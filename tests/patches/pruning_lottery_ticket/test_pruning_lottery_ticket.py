from tests.equivalence.proof import observes, proofs

PROOFS = proofs(
    "pruning-lottery-ticket",
    observes({"pruned": 32, "put_back": False}),
    right=observes({"pruned": 32, "put_back": True}),
)
