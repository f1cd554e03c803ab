"""Issue 17245: StochasticWeightAveraging steps with old gradients in the epoch that updates batch norm statistics."""

import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["plain", "dropped"])
def test_average_without_old_gradients_is_unchanged(case):
    stock, shim = (run("swa_stale_gradients", Variant("lightning", "2.6.6", on), case) for on in (False, True))
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


PROOFS = proofs(
    "swa-stale-gradients",
    sees(lambda seen: not seen["is_average"]),
    "norm",
    recommended="dropped",
    right=sees(lambda seen: seen["is_average"]),
)
