from tests.support.programs import Program, sees

PROGRAM = Program("swa-stale-gradients", "2.6.6")

test_average_without_old_gradients_is_unchanged = PROGRAM.unchanged("plain", "dropped")

STALE, RIGHT = sees(lambda seen: not seen["is_average"]), sees(lambda seen: seen["is_average"])
test_weights_are_the_average_with_a_gradient_scaler = PROGRAM.fixed(
    "scaler", bug=STALE, right=RIGHT, on=("2.0.0", "2.6.6")
)
PROOFS = PROGRAM.proofs(STALE, "norm", recommended="dropped", right=RIGHT)
