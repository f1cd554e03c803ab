from tests.support.programs import Program, sees

PROGRAM = Program("comet-offline", "2.6.6")

test_other_experiments_are_unchanged = PROGRAM.unchanged("online", "disabled")

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["disabled"] is True and not seen["recorded"]),
    "offline",
    recommended="started",
    since="2.5.1",
    right=sees(lambda seen: seen["recorded"] and seen["online"] is False),
)
