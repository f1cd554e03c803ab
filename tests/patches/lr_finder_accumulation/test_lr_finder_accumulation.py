from tests.support.programs import Program, Proof, only, sees

NAME = "lr-finder-accumulation"
test_search_that_records_all_steps_is_unchanged = Program(NAME, "2.6.6").unchanged("all", on=["2.0.0", "2.6.6"])
PROOFS = tuple(
    Proof(
        NAME,
        shows_bug=sees(lambda seen: seen["points"] < 12),
        right=sees(lambda seen: seen["points"] == len(seen["rates"]) == 12),
        case=case,
        observed=only("rates", "points"),
        recommended=f"{case}-as-one",
    )
    for case in ("none", "some")
)
