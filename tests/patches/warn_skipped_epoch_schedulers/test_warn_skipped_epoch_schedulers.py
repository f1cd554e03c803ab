from tests.support.programs import Program

PROGRAM = Program("warn-skipped-epoch-schedulers", "2.5.6", scenario="skipped_epoch_schedulers")

test_skipped_step_causes_one_warning = PROGRAM.warns(
    "epoch", "plateau", says="on_train_batch_start ended the epoch by returning -1", on=("2.0.0", "2.5.6")
)
test_warning_is_absent_if_no_step_is_missing = PROGRAM.unchanged("by hand", "step", "whole", "error")


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    shim = PROGRAM.shim("epoch", toggle="default,skipped-epoch-schedulers").facts
    assert shim["warnings"] == [] and len(set(shim["rates"])) == 4
