from tests.support.programs import Program

PROGRAM = Program("warn-pretrained-in-eval", "2.4.0")

test_module_trained_in_evaluation_mode_causes_a_warning = PROGRAM.warns(
    "eval", says="have parameters that are trained: pretrained.0", on=("2.2.0", "2.5.4")
)
test_warning_is_absent_for_other_models = PROGRAM.unchanged("train", "frozen", "switched")
test_warning_is_absent_on_unaffected_releases = PROGRAM.unchanged("eval", on=("2.1.4", "2.5.5"))
