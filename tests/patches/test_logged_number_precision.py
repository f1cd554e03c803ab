"""PR 19046: Python numbers that are logged while bfloat16 is the default."""

from tests.equivalence.proof import Proof, sees

PROOFS = tuple(
    Proof(
        "logged-number-precision",
        sees(lambda seen: seen["metrics"]["float"] == (0.12353515625).hex()),
        case=case,
        since=since,
        right=sees(lambda seen: abs(float.fromhex(seen["metrics"]["float"]) - 0.123456) < 1e-8),
    )
    for case, since in (("default", ""), ("precision", "2.1.0"))
)
