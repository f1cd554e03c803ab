from tests.support.programs import Program, sees

PROGRAM = Program("double-precision-restored", "2.6.6")

test_program_that_needs_no_fix_is_unchanged = PROGRAM.unchanged("single", "own", "fit-converted")

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["exact"] is False and seen["dtype"] == "torch.float64"),
    "fit",
    "validate",
    "test",
    "predict",
    recommended="{}-converted",
    right=sees(lambda seen: seen["exact"] is True),
)
