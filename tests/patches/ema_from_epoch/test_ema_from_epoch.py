"""EMAWeightAveraging ignores update_starting_at_epoch, and averages from the first step on."""

import pytest

from tests.equivalence.proof import only, proofs, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["subclass", "step", "both", "plain"])
def test_other_averages_are_unchanged(case):
    stock = run("ema_from_epoch", Variant("lightning", "2.6.6"), case)
    shim = run("ema_from_epoch", Variant("lightning", "2.6.6", shim=True), case, toggle="all")
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


RIGHT = 0.05078125
"""The average of the last two epochs, each of whose two steps and its end count with a weight of one half."""

PROOFS = proofs(
    "ema-from-epoch",
    sees(lambda seen: seen["weight"] != [RIGHT.hex()]),
    "epoch",
    recommended="subclass",
    since="2.6.0",
    observed=only("weight"),
    right=sees(lambda seen: seen["weight"] == [RIGHT.hex()]),
)
