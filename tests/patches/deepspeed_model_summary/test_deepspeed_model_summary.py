from tests.support.programs import Program, ends_with, only, sees

PROGRAM = Program("deepspeed-model-summary", "2.5.6")

test_custom_count_of_a_program_is_kept = PROGRAM.unchanged(
    "own", check=sees(lambda seen: seen["counts"] == ["7"] and seen["left"] is None)
)

PROOFS = PROGRAM.proofs(
    ends_with("'DeepSpeedSummary' object has no attribute 'flop_counts'"),
    "",
    "input",
    "leftover",
    observed=only("table"),
    right=sees(lambda seen: seen["table"]["Params per Device"][0] == "33"),
    note="The column of FLOPs, a feature of 2.6.0, is left out of the comparison.",
)
