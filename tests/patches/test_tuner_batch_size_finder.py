"""Issue 18394: validation limited to the batch size finder's ``steps_per_trial`` batches."""

from tests.equivalence.proof import Proof, sees

PROOFS = (
    Proof(
        "batch-size-finder-val-loader",
        sees(lambda seen: seen["validated"] == [[2, 2]] * 2),
        right=sees(lambda seen: seen["validated"] == [[8] * 8] * 2),
    ),
)
