"""PR 21396: StochasticWeightAveraging with max_epochs=-1."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run


def observed(variant, case=""):
    result = run("swa_infinite_epochs", variant, case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.6.0")])
def test_weights_are_the_average_at_the_end(distribution, version):
    stock = observed(Variant(distribution, version))
    assert stock["steps"] == 8 and stock["as_trained"] and not stock["averaged"], stock

    shim = observed(Variant(distribution, version, shim=True))
    assert shim["averaged"] and not shim["as_trained"], shim
    assert shim["weights"] == observed(Variant("lightning", "2.6.1"))["weights"]


def test_model_with_batch_norm_is_trained():
    assert observed(Variant("lightning", "2.6.0"), "batch-norm")["steps"] == 0

    shim = observed(Variant("lightning", "2.6.0", shim=True), "batch-norm")
    assert shim["steps"] == 8 and shim["averaged"], shim
    assert shim["weights"] == observed(Variant("lightning", "2.6.1"), "batch-norm")["weights"]


def test_run_that_ends_early_keeps_what_it_has_learned():
    official = observed(Variant("lightning", "2.6.1"), "early")
    assert official["steps"] == 8 and not official["as_trained"], official
    assert observed(Variant("lightning", "2.6.0", shim=True), "early")["as_trained"]


def test_fraction_of_unknown_epochs_is_named_and_nothing_is_averaged():
    official = run("swa_infinite_epochs", Variant("lightning", "2.6.1"), "fraction")
    assert not official.ok and "`swa_epoch_start` as a float is not supported" in official.output, official

    shim = observed(Variant("lightning", "2.6.0", shim=True), "fraction")
    assert shim["as_trained"], shim
    assert [w for w in shim["warnings"] if "Pass the number of an epoch" in w], shim


@pytest.mark.parametrize("case", ["early", "fraction"])
def test_without_an_average_the_weights_are_those_of_stock(case):
    stock, shim = (observed(Variant("lightning", "2.6.0", shim=on), case) for on in (False, True))
    assert stock["as_trained"] and {**shim, "warnings": []} == {**stock, "warnings": []}


@pytest.mark.parametrize("version", ["2.0.0", "2.5.2"])
def test_subclass_that_finishes_averaging_itself_is_unchanged(version):
    stock, shim = (observed(Variant("pytorch-lightning", version, shim=on), "own") for on in (False, True))
    assert stock["averaged"] and shim == stock, shim


PROOFS = (
    Proof(
        "swa-infinite-epochs",
        sees(lambda seen: not seen["averaged"]),
        observed=only("steps", "weights", "averaged"),
    ),
    Proof(
        "swa-infinite-epochs",
        sees(lambda seen: seen["steps"] == 0),
        case="batch-norm",
        observed=only("steps", "weights", "averaged"),
    ),
)
