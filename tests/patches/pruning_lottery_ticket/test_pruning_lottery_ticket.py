from tests.equivalence.proof import Proof, observes

PROOFS = (
    Proof(
        "pruning-lottery-ticket",
        observes({"pruned": 32, "put_back": False}),
        right=observes({"pruned": 32, "put_back": True}),
    ),
)
