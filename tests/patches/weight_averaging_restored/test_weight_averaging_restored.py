"""Checkpoints of WeightAveraging give the weights of the last step, or lose what on_load_checkpoint changes."""

import pytest

from tests.equivalence.proof import Proof, ends_with, only, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["resume", "set-both", "rename-both", "trained", "validate", "test-fresh", "whole"])
def test_program_that_needs_no_fix_is_unchanged(case):
    stock, shim = (run("weight_averaging_restored", Variant("lightning", "2.6.6", on), case) for on in (False, True))
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


def test_subclass_that_swaps_the_weights_for_the_test_tests_the_average():
    stock, shim = (
        run("weight_averaging_restored", Variant("lightning", "2.6.6", on), "test-swap") for on in (False, True)
    )
    assert stock.ok and shim.observations[0]["used"] == stock.observations[0]["used"], (stock, shim)


def _trained(steps):
    """Check that the last weight used, or left, is that of a step."""
    return sees(lambda seen: (seen["used"][-1:] or [[float.fromhex(seen["weight"][0])]])[0][0] in (_hex(steps),))


def _hex(steps):
    return (1 - steps / 8).hex()


PROOFS = (
    Proof("weight-averaging-restored", _trained(6), case="test", recommended="test-fresh", observed=only("used")),
    Proof("weight-averaging-restored", _trained(6), case="predict", recommended="predict-fresh", observed=only("used")),
    Proof(
        "weight-averaging-restored",
        sees(lambda seen: seen["weight"] == [_hex(6)]),
        case="finished",
        recommended="whole",
        observed=only("weight"),
    ),
    Proof(
        "weight-averaging-restored",
        sees(lambda seen: float.fromhex(seen["scale"][0]) == 1.0),
        case="set",
        recommended="set-both",
        right=sees(lambda seen: float.fromhex(seen["scale"][0]) == 5.0),
    ),
    Proof(
        "weight-averaging-restored",
        ends_with('Missing key(s) in state_dict: "head.weight"'),
        case="rename",
        recommended="rename-both",
    ),
)
