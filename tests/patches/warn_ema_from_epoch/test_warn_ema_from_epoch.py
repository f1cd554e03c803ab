from tests.support.programs import Program

PROGRAM = Program("warn-ema-from-epoch", "2.6.6", scenario="ema_from_epoch")

test_early_average_causes_one_warning = PROGRAM.warns(
    "epoch",
    says="EMAWeightAveraging(update_starting_at_epoch=2) averages from the first step on",
    on=("2.6.0", "2.6.6"),
)
test_warning_is_absent_for_other_averages = PROGRAM.unchanged("subclass", "step", "both", "plain")


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    assert PROGRAM.shim("never", toggle="all").facts == PROGRAM.stock("without").facts
