from tests.support.programs import Program, only, sees

PROGRAM = Program("early-stopping-patience", "2.6.6", alone=True)

test_other_programs_are_unchanged = PROGRAM.unchanged("set", "same", "fresh")

PROOFS = PROGRAM.proofs(
    sees(lambda seen: (seen["epochs"], seen["patience"]) == (4, 3)),
    "longer",
    recommended="set",
    observed=only("epochs", "patience"),
)
