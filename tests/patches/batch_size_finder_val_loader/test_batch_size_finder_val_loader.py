from tests.equivalence.proof import Proof, sees

PROOFS = (
    Proof(
        "batch-size-finder-val-loader",
        sees(lambda seen: seen["validated"] == [[2, 2]] * 2),
        case="callback",
        right=sees(lambda seen: seen["validated"] == [[8] * 8] * 2),
    ),
    Proof(
        "batch-size-finder-val-loader",
        sees(lambda seen: seen["batch_sizes"] == [8, 2] and seen["limit"] == [2]),
        case="tuner",
        right=sees(lambda seen: seen["batch_sizes"] == [8, 8] and seen["limit"] == [8]),
    ),
)
