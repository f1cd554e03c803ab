import pytest

from tests.differential.trial import difference
from tests.support.programs import Program, sees

PROGRAM = Program("lr-finder-applies-lr", "2.5.3", alone=True)

TOGETHER = "lr-finder-restarting-flag,lr-finder-val-loader,lr-finder-train-loader,lr-finder-applies-lr"
INITIAL = (1e-3).hex()
OLD_RATES = [[INITIAL, (5e-4).hex()]]


def test_learning_rate_property_is_set_once():
    assert not difference("asked_rate", "2.5.2", "lr-finder-applies-lr")


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["rates"] == OLD_RATES * len(seen["rates"]) and seen["attribute"] != INITIAL),
    "callback",
    right=sees(lambda seen: seen["rates"] == [[seen["attribute"]] * 2] * 32),
)


@pytest.mark.parametrize("case", ["hparams", "step_lr", "lambda_lr"])
def test_each_step_equals_the_fixed_release(case):
    stock = PROGRAM.stock(case).facts
    assert stock["rates"][:1] == OLD_RATES, stock
    assert stock["attribute"] != INITIAL, stock
    shim = PROGRAM.shim(case).facts
    assert shim["rates"][0] == [stock["attribute"]] * 2
    assert shim == PROGRAM.stock(case, "2.5.4").facts


def test_parameter_groups_with_different_rates_are_named():
    shim = PROGRAM.shim("groups").facts
    (said,) = shim.pop("warnings")
    assert "they had 0.0005, 0.001." in said and "Tuner.lr_find" in said
    official = PROGRAM.stock("groups", "2.5.4").facts
    assert official.pop("warnings") == []
    assert shim == official


# Tuner.lr_find, as the warning recommends: the fit creates new optimizers, and each group has its rate.
test_message_is_absent_if_the_search_precedes_the_fit = PROGRAM.unchanged(
    "groups_tuner",
    check=sees(lambda seen: seen["warnings"] == [] and seen["rates"][0] == [seen["attribute"], *OLD_RATES[0][1:]]),
)

test_run_without_the_bug_is_unchanged = PROGRAM.unchanged("tuner", "no_update", "none", toggle=TOGETHER)


@pytest.mark.distributed
def test_both_ranks_train_with_the_found_rate():
    stock = PROGRAM.stock("ddp")
    assert [rank["rates"][0] for rank in stock.observations] == OLD_RATES * 2, stock
    shim = PROGRAM.shim("ddp", toggle=TOGETHER)
    assert shim.ok, shim
    assert [rank["rates"][0] for rank in shim.observations] == [[stock.observations[0]["attribute"]] * 2] * 2
    assert shim.observations == PROGRAM.stock("ddp", "2.5.4").observations
