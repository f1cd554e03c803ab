"""PR 21191: with the lottery ticket hypothesis, the weights that are left are not put back."""

from tests.equivalence.proof import Proof, observes

PROOFS = (
    Proof(
        "pruning-lottery-ticket",
        observes({"pruned": 32, "put_back": False}),
        right=observes({"pruned": 32, "put_back": True}),
    ),
)
