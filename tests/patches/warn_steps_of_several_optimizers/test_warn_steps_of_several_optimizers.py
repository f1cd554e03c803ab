from tests.support.programs import Program

PROGRAM = Program("warn-steps-of-several-optimizers", "2.6.6", toggle="default")

test_end_after_half_of_the_batches_is_warned_of_once = PROGRAM.warns(
    "two", on=["2.0.0", "2.6.6"], says="max_steps=4 ended the training after 2 batches"
)
test_no_warning_if_each_batch_is_one_step = PROGRAM.unchanged("turns", "one", "epochs", on=["2.0.0", "2.6.6"])
