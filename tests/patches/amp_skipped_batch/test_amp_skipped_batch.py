"""PR 18267: training_step returns None in 16-mixed precision."""

from tests.equivalence.proof import Proof, ends_with
from tests.support.variants import Variant, run

AGAIN = "unscale_() has already been called on this optimizer since the last update()"
TOO_EARLY = "Attempted unscale_ but _scale is None"
PROOFS = (
    Proof("amp-skipped-batch", ends_with(TOO_EARLY), "first"),
    Proof("amp-skipped-batch", ends_with(AGAIN), "row"),
)


def test_training_without_skips_is_unchanged():
    stock = run("amp_skipped_batch", Variant("pytorch-lightning", "2.0.6"), "none_skipped")
    shim = run("amp_skipped_batch", Variant("pytorch-lightning", "2.0.6", shim=True), "none_skipped")
    assert stock.ok and shim.ok, (stock, shim)
    assert shim.observations == stock.observations
