from tests.support.programs import Program

PROGRAM = Program("warn-validation-on-resume", "2.4.0", "pytorch-lightning", scenario="validation_on_resume")

test_repeated_validation_causes_one_warning = PROGRAM.warns(
    "",
    "end",
    says="This run was resumed from a checkpoint that was saved at the end of a validation",
    on=("2.0.0", "2.4.0"),
)
# Also if the module has turned it into a sanity check.
test_warning_is_absent_if_no_validation_is_repeated = PROGRAM.unchanged("start", "epoch", "marks", "marks later")


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    observed = PROGRAM.shim(toggle="default,validation-on-resume").facts
    assert observed["warnings"] == [] and observed["resumed"]["seen"][0] == "train 4"
