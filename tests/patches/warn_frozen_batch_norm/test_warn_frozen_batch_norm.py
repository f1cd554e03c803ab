from tests.equivalence.proof import observes
from tests.support.programs import Program

PROGRAM = Program("warn-frozen-batch-norm", "2.1.4", "pytorch-lightning")

NAMES = "The batch norm layer body.1 is in training mode, though"
test_warning_names_the_layer_that_is_trained = PROGRAM.warns("", "start", says=NAMES, on=("2.0.0", "2.1.4"))
test_warning_names_the_layer_in_the_middle_of_a_run = PROGRAM.warns("middle", "validated", says=NAMES)
test_warning_is_absent_if_the_model_trains_the_layer = PROGRAM.unchanged(
    "trained", "evaluated", check=observes({"moved": True, "warnings": []})
)
test_warning_is_absent_if_the_layer_stays_frozen = PROGRAM.unchanged(
    "kept", "again", "step", check=observes({"moved": False, "warnings": []})
)
test_next_release_keeps_the_mode = PROGRAM.unchanged(on=("2.2.0",), check=observes({"moved": False, "warnings": []}))
