from tests.support.programs import Program, only

PROGRAM = Program("warn-checkpoint-before-validation", "2.6.6", scenario="checkpoint_after_own_validation")

test_checkpoint_with_an_old_metric_causes_one_warning = PROGRAM.warns(
    "within",
    says="just before the validation of that step, and ranks it by the previous value of 'metric'",
    on=("2.0.0", "2.6.6"),
)
test_warning_is_absent_for_other_checkpoints = PROGRAM.unchanged("subclass", "apart", "no-monitor", "epochs")
test_warning_is_absent_if_the_opt_in_patch_is_selected = PROGRAM.unchanged(
    "within", observed=only("warnings"), toggle="default,checkpoint-after-own-validation"
)
