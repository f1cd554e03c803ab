from tests.equivalence.proof import Proof, sees

PROOFS = (
    Proof(
        "logged-tensor-precision",
        sees(lambda seen: seen["metrics"]["mean"] == (0.5).hex()),  # the mean of 512 ones
        case="default",
        right=sees(lambda seen: seen["metrics"]["mean"] == (1.0).hex()),
    ),
)
