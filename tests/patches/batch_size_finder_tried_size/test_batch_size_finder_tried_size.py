from tests.support.programs import Program, sees

PROGRAM = Program("batch-size-finder-tried-size", "2.5.6", alone=True)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["found"] == seen["set"] == 16 and 16 not in seen["tried"]),
    "power",
    right=sees(lambda seen: seen["found"] == seen["set"] and seen["found"] in seen["tried"]),
)

test_search_that_ends_without_an_error_is_unchanged = PROGRAM.unchanged("oom", "first", "small")
