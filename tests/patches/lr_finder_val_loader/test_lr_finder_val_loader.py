from tests.equivalence.proof import proofs, sees

PROOFS = proofs(
    "lr-finder-val-loader",
    sees(lambda seen: seen["validated"] == [3, 3]),
    right=sees(lambda seen: seen["validated"] == [8, 8]),
)
