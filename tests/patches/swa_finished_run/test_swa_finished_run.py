"""A finished run with StochasticWeightAveraging that is resumed ends with the weights of the last step."""

import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["within", "batch norm", "subclass"])
def test_run_that_keeps_its_weights_is_unchanged(case):
    stock = run("swa_finished_run", Variant("lightning", "2.6.6"), case)
    shim = run("swa_finished_run", Variant("lightning", "2.6.6", shim=True), case)
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


PROOFS = proofs(
    "swa-finished-run",
    sees(lambda seen: seen["is_whole"] is False),
    "plain",
    recommended="within",
    right=sees(lambda seen: seen["is_whole"] is True),
)
