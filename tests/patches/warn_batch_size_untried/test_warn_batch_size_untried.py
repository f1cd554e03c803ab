from tests.support.programs import Program

PROGRAM = Program("warn-batch-size-untried", "2.5.6", scenario="batch_size_finder_tried_size")

RELEASES = ("2.0.0", "2.5.6")
RETURNS = "It returns {}, but the largest batch size that it has tried is {}."
test_untried_size_causes_one_warning = PROGRAM.warns("power", says=RETURNS.format(16, 8), on=RELEASES)
test_untried_size_after_one_trial_causes_one_warning = PROGRAM.warns("one", says=RETURNS.format(4, 2), on=RELEASES)
test_warning_is_absent_if_the_size_was_tried = PROGRAM.unchanged("oom", "first", "small", "binsearch")


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    shim = PROGRAM.shim("power", toggle="default,batch-size-finder-tried-size").facts
    assert shim["warnings"] == [] and shim["found"] in shim["tried"]
