from tests.support.programs import Program, sees

PROGRAM = Program("batch-size-finder-limit", "2.6.6", alone=True)

test_search_that_ends_below_the_limit_is_unchanged = PROGRAM.unchanged("oom", "small", "trials")

PROOFS = tuple(
    PROGRAM.proof(
        sees(lambda seen: seen["found"] >= 20 and not seen["is_tried"]),
        case=case,
        recommended={"power": "trials", "binsearch": "binsearch-trials"}[case],
        since="2.6.0",
        right=sees(lambda seen: seen["found"] == seen["set"] == 12 and seen["is_tried"]),
    )
    for case in ("power", "binsearch")
)
