from tests.support.programs import Program

PROGRAM = Program("warn-metric-without-step-value", "2.6.6")
SAYS = "self.log('mean', ..., on_step=True) logs no value for the step: {} has none."

test_missing_step_value_causes_one_warning = PROGRAM.warns(
    "update", says=SAYS.format("MeanMetric"), on=("2.0.0", "2.6.6")
)
test_missing_step_value_of_a_running_mean_causes_one_warning = PROGRAM.warns(
    "running", says=SAYS.format("RunningMean"), on=("2.0.0", "2.6.6")
)
test_warning_is_absent_if_all_values_are_logged = PROGRAM.unchanged("forward", "epoch", "tensor")
