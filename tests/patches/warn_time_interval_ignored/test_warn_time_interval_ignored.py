from tests.support.programs import Program

PROGRAM = Program(
    "warn-time-interval-ignored", "2.6.6", "pytorch-lightning", scenario="manual_optimization_time_interval"
)

test_missing_checkpoint_causes_one_warning = PROGRAM.warns(
    "", "hour", says="No checkpoint is saved at train_time_interval", on=("2.6.0", "2.6.6")
)
# With automatic optimization, and without an interval.
test_warning_is_absent_in_other_cases = PROGRAM.unchanged("automatic", "steps")


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    patched = PROGRAM.shim(toggle="default,manual-optimization-time-interval").facts
    assert patched["warnings"] == [] and patched["steps"] == [1, 2, 3, 4]
