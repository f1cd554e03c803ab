from tests.support.programs import Program

PROGRAM = Program("warn-lr-finder-accumulation", "2.6.6", scenario="lr_finder_accumulation")
test_left_out_steps_are_warned_of_once = PROGRAM.warns(
    "none", "some", says="no multiple of accumulate_grad_batches", on=["2.0.0", "2.6.6"]
)
test_search_that_records_all_steps_gives_no_warning = PROGRAM.unchanged("all")
test_no_warning_with_the_fix = PROGRAM.unchanged(
    "some", toggle="default,lr-finder-accumulation", observed=lambda ranks: [rank["warnings"] for rank in ranks]
)
