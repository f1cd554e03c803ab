from tests.support.programs import Program, only

PROGRAM = Program("warn-batch-size-finder-limit", "2.6.6", scenario="batch_size_finder_limit")

test_untried_limit_causes_one_warning = PROGRAM.warns(
    "power", "binsearch", says="but the largest that it has tried is 12.", on=("2.6.0", "2.6.6")
)
test_warning_is_absent_if_the_size_was_tried = PROGRAM.unchanged("oom", "small", "trials")
test_warning_is_absent_if_the_opt_in_patch_is_selected = PROGRAM.unchanged(
    "power", observed=only("warnings"), toggle="default,batch-size-finder-limit"
)
