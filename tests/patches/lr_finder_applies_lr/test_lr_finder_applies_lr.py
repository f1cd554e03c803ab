"""Pull request 21068: the optimizer continues with the rate from before the search."""

import pytest

from tests.differential.trial import difference
from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

SCENARIO = "lr_finder_applies_lr"
TOGETHER = "lr-finder-restarting-flag,lr-finder-val-loader,lr-finder-train-loader,lr-finder-applies-lr"
INITIAL = (1e-3).hex()
OLD_RATES = [[INITIAL, (5e-4).hex()]]


def test_learning_rate_property_is_set_once():
    assert not difference("asked_rate", "2.5.2", "lr-finder-applies-lr")


PROOFS = (
    Proof(
        "lr-finder-applies-lr",
        sees(lambda seen: seen["rates"] == OLD_RATES * len(seen["rates"]) and seen["attribute"] != INITIAL),
        case="callback",
        right=sees(lambda seen: seen["rates"] == [[seen["attribute"]] * 2] * 32),
    ),
)


def observed(variant, case="", toggle=None):
    result = run(SCENARIO, variant, case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", ["hparams", "step_lr", "lambda_lr"])
def test_each_step_equals_the_fixed_release(case):
    stock = observed(Variant("lightning", "2.5.3"), case)
    assert stock["rates"][:1] == OLD_RATES, stock
    assert stock["attribute"] != INITIAL, stock
    shim = observed(Variant("lightning", "2.5.3", shim=True), case, toggle="lr-finder-applies-lr")
    assert shim["rates"][0] == [stock["attribute"]] * 2
    assert shim == observed(Variant("lightning", "2.5.4"), case)


def test_parameter_groups_with_different_rates_are_named():
    shim = observed(Variant("lightning", "2.5.3", shim=True), "groups", toggle="lr-finder-applies-lr")
    (said,) = shim.pop("warnings")
    assert "they had 0.0005, 0.001." in said and "Tuner.lr_find" in said
    official = observed(Variant("lightning", "2.5.4"), "groups")
    assert official.pop("warnings") == []
    assert shim == official


def test_no_message_if_the_search_precedes_the_fit():
    """Tuner.lr_find, as the warning recommends: the fit makes its optimizers anew, and each group has its rate."""
    shim = observed(Variant("lightning", "2.5.3", shim=True), "groups_tuner", toggle="lr-finder-applies-lr")
    assert shim["warnings"] == [] and shim["rates"][0] == [shim["attribute"], *OLD_RATES[0][1:]]
    assert shim == observed(Variant("lightning", "2.5.3"), "groups_tuner")


@pytest.mark.parametrize("case", ["tuner", "no_update", "none"])
def test_run_without_the_bug_is_unchanged(case):
    shim = observed(Variant("lightning", "2.5.3", shim=True), case, toggle=TOGETHER)
    assert shim == observed(Variant("lightning", "2.5.3"), case)


@pytest.mark.distributed
def test_two_ranks():
    stock = run(SCENARIO, Variant("lightning", "2.5.3"), "ddp")
    assert [rank["rates"][0] for rank in stock.observations] == OLD_RATES * 2, stock
    shim = run(SCENARIO, Variant("lightning", "2.5.3", shim=True), "ddp", toggle=TOGETHER)
    assert shim.ok, shim
    assert [rank["rates"][0] for rank in shim.observations] == [[stock.observations[0]["attribute"]] * 2] * 2
    assert shim.observations == run(SCENARIO, Variant("lightning", "2.5.4"), "ddp").observations
