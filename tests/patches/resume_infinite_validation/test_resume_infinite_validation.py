from tests.equivalence.proof import Proof, ends_with

PROOFS = (
    Proof(
        "resume-infinite-validation",
        ends_with("OverflowError: cannot convert float infinity to integer"),
        case="stream",
    ),
)
