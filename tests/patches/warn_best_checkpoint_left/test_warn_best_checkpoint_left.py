from tests.equivalence.proof import only
from tests.support.programs import Program

PROGRAM = Program("warn-best-checkpoint-left", "2.6.6", scenario="monitored_checkpoint_first")

test_unknown_best_checkpoint_causes_one_warning = PROGRAM.warns(
    "last_first",
    says="last-epoch=1.ckpt was saved before ModelCheckpoint(monitor='loss') saved best-epoch=1.ckpt",
    on=("1.8.0", "1.9.5", "2.0.0", "2.6.6"),
)
test_warning_is_absent_for_other_runs = PROGRAM.unchanged("best_first", "whole", "alone", "other", "deleted")
test_warning_is_absent_if_the_opt_in_patch_is_selected = PROGRAM.unchanged(
    "last_first", observed=only("warnings"), toggle="default,monitored-checkpoint-first"
)
