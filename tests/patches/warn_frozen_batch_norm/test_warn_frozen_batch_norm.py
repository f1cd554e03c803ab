from tests.support.programs import Program, sees

PROGRAM = Program("warn-frozen-batch-norm", "2.1.4", "pytorch-lightning", scenario="eval_mode_kept")
trained, frozen = sees(lambda seen: seen["moved"]), sees(lambda seen: not seen["moved"])

NAMES = "The batch norm layer body.1 is in training mode, though"
test_warning_names_the_layer_that_is_trained = PROGRAM.warns("fit", "start", says=NAMES, on=("2.0.0", "2.1.4"))
test_warning_names_the_layer_in_the_middle_of_a_run = PROGRAM.warns("middle", "validated-before", says=NAMES)
test_warning_is_absent_if_the_model_trains_the_layer = PROGRAM.unchanged("trained", "evaluated", check=trained)
test_warning_is_absent_if_the_layer_stays_frozen = PROGRAM.unchanged("kept", "again", "step", check=frozen)
test_next_release_keeps_the_mode = PROGRAM.unchanged(
    "fit", on=("2.2.0",), check=frozen, toggle="warn-frozen-batch-norm"
)
