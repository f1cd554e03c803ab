from tests.equivalence.proof import Proof, ends_with, sees

PROOFS = (
    Proof(
        "optimized-python",
        ends_with("UnboundLocalError: "),
        fresh=True,
        right=sees(lambda seen: seen["steps"] == 6 and seen["predictions"] == 64),
    ),
)
