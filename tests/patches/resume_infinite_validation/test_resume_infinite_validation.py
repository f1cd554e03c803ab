from tests.equivalence.proof import ends_with, proofs

PROOFS = proofs(
    "resume-infinite-validation", ends_with("OverflowError: cannot convert float infinity to integer"), "stream"
)
