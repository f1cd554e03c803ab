import pytest

from tests.support.programs import Program, only, sees

PROGRAM = Program("swa-infinite-epochs", "2.6.0")


def test_run_that_ends_early_keeps_what_it_has_learned():
    official = PROGRAM.stock("early", "2.6.1").facts
    assert official["steps"] == 8 and not official["as_trained"], official
    assert PROGRAM.shim("early").facts["as_trained"]


def test_fraction_of_unknown_epochs_is_named_and_nothing_is_averaged():
    official = PROGRAM.stock("fraction", "2.6.1")
    assert not official.ok and "`swa_epoch_start` as a float is not supported" in official.output, official

    shim = PROGRAM.shim("fraction").facts
    assert shim["as_trained"], shim
    assert [w for w in shim["warnings"] if "Pass the number of an epoch" in w], shim


@pytest.mark.parametrize("case", ["early", "fraction"])
def test_without_an_average_the_weights_are_those_of_stock(case):
    stock, shim = (result.facts for result in PROGRAM.both(case))
    assert stock["as_trained"] and {**shim, "warnings": []} == {**stock, "warnings": []}


test_subclass_that_finishes_averaging_itself_is_unchanged = PROGRAM.unchanged(
    "own", on=("2.0.0", "2.5.2"), check=sees(lambda seen: seen["averaged"]), distribution="pytorch-lightning"
)

PROOFS = (
    PROGRAM.proof(
        sees(lambda seen: seen["steps"] == 8 and seen["as_trained"] and not seen["averaged"]),
        observed=only("steps", "weights", "averaged"),
    ),
    PROGRAM.proof(
        sees(lambda seen: seen["steps"] == 0),
        case="batch-norm",
        observed=only("steps", "weights", "averaged"),
        right=sees(lambda seen: seen["steps"] == 8 and seen["averaged"]),
    ),
)
