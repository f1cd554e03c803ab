from tests.equivalence.proof import ends_with, proofs, sees

PROOFS = proofs(
    "optimized-python",
    ends_with("UnboundLocalError: "),
    fresh=True,
    right=sees(lambda seen: seen["steps"] == 6 and seen["predictions"] == 64),
)
