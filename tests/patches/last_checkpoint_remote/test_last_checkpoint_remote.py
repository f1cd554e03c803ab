from tests.support.programs import Program, sees

PROGRAM = Program("last-checkpoint-remote", "2.6.6")

test_found_checkpoint_is_resumed_as_on_stock = PROGRAM.unchanged(
    "local", "workaround", on=("2.1.0", "2.6.6"), check=sees(lambda seen: seen["steps"][0] == 4)
)
test_run_without_a_checkpoint_starts_as_on_stock = PROGRAM.unchanged(
    "none", "timeless", on=("2.1.0", "2.6.6"), check=sees(lambda seen: seen["steps"][0] == 0)
)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["steps"] == list(range(8))),
    "memory",
    recommended="explicit",
    right=sees(lambda seen: seen["steps"] == [4, 5, 6, 7]),
)
