from tests.support.programs import Program, only

PROGRAM = Program("warn-early-stopping-patience", "2.6.6", scenario="early_stopping_patience")

test_patience_of_the_checkpoint_causes_one_warning = PROGRAM.warns(
    "longer",
    says="EarlyStopping has the patience of the checkpoint, 3, and not the 8 that the program gives.",
    on=("2.0.0", "2.6.6"),
)
test_warning_is_absent_if_the_patience_is_the_same = PROGRAM.unchanged("same", "fresh")
test_warning_is_absent_if_the_opt_in_patch_is_selected = PROGRAM.unchanged(
    "longer", observed=only("warnings"), toggle="default,early-stopping-patience"
)
