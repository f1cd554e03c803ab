from tests.equivalence.proof import proofs, sees
from tests.support.programs import Program

PROGRAM = Program("swa-stale-gradients", "2.6.6")

test_average_without_old_gradients_is_unchanged = PROGRAM.unchanged("plain", "dropped")

PROOFS = proofs(
    "swa-stale-gradients",
    sees(lambda seen: not seen["is_average"]),
    "norm",
    recommended="dropped",
    right=sees(lambda seen: seen["is_average"]),
)
