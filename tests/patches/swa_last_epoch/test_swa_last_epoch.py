"""StochasticWeightAveraging averages the weights at the start of each epoch, so the last epoch has no effect."""

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run


def test_subclass_that_averages_epoch_ends_is_unchanged():
    stock = run("swa_last_epoch", Variant("lightning", "2.6.6"), "subclass")
    shim = run("swa_last_epoch", Variant("lightning", "2.6.6", shim=True), "subclass", toggle="swa-last-epoch")
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


PROOFS = proofs(
    "swa-last-epoch",
    sees(lambda seen: seen["has_last"] is False),
    "plain",
    recommended="subclass",
    right=sees(lambda seen: seen["has_last"] is True),
)
