from tests.support.programs import Program, sees

PROGRAM = Program("swa-last-epoch", "2.6.6", alone=True)

test_subclass_that_averages_epoch_ends_is_unchanged = PROGRAM.unchanged("subclass")

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["has_last"] is False),
    "plain",
    recommended="subclass",
    right=sees(lambda seen: seen["has_last"] is True),
)
