import pytest

from tests.differential.trial import difference
from tests.support.programs import Program, sees

PROGRAM = Program("lr-finder-applies-lr", "2.5.3", alone=True)

TOGETHER = "lr-finder-restarting-flag,lr-finder-val-loader,lr-finder-train-loader,lr-finder-applies-lr"
INITIAL = (1e-3).hex()


def half(rate):
    return (float.fromhex(rate) / 2).hex()


def test_learning_rate_property_is_set_once():
    assert not difference("asked_rate", "2.5.2", "lr-finder-applies-lr")


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["attribute"] != INITIAL and seen["rates"][0][1] != half(seen["attribute"])),
    "callback",
    recommended="by_hand_{}",
    right=sees(lambda seen: seen["rates"] == [[seen["attribute"], half(seen["attribute"])]] * 32),
)

test_training_equals_a_run_whose_rate_is_set_by_hand = PROGRAM.fixed(
    "hparams", "step_lr", "lambda_lr", "warm_up", "cyclic", "nested", reference="by_hand_{}", on=("2.5.3", "2.6.6")
)


@pytest.mark.parametrize("version", ["2.5.3", "2.6.6"])
def test_program_that_scales_the_rates_trains_with_the_found_rate(version):
    shim, by_hand = PROGRAM.shim("scaled", version).facts, PROGRAM.stock("by_hand_scaled", version).facts
    assert shim == by_hand


test_run_without_the_bug_is_unchanged = PROGRAM.unchanged("tuner", "no_update", "none", toggle=TOGETHER)


@pytest.mark.distributed
def test_both_ranks_train_with_the_found_rate():
    stock = PROGRAM.stock("ddp")
    assert [rank["rates"][0] for rank in stock.observations] == [[INITIAL, half(INITIAL)]] * 2, stock
    shim = PROGRAM.shim("ddp", toggle=TOGETHER)
    assert shim.observations == PROGRAM.stock("by_hand_ddp").observations
