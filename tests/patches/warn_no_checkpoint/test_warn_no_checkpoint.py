from tests.support.programs import Program

PROGRAM = Program("warn-no-checkpoint", "2.6.6", toggle="default")

test_missing_checkpoint_is_warned_of_once = PROGRAM.warns(
    "raw", "raw-steps", on=["2.0.0", "2.6.6"], says="ModelCheckpoint has saved nothing in 6 batches"
)
test_no_warning_if_checkpoints_are_saved_or_not_due = PROGRAM.unchanged(
    "known", "none", "early", "saved", "automatic", on=["2.0.0", "2.6.6"]
)
