"""PR 18267: training_step returns None in 16-mixed precision."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run

AGAIN = "unscale_() has already been called on this optimizer since the last update()"
TOO_EARLY = "Attempted unscale_ but _scale is None"
PROOFS = (
    Proof("amp-skipped-batch", ends_with(TOO_EARLY), "first"),
    Proof("amp-skipped-batch", ends_with(AGAIN), "row"),
)


@pytest.mark.parametrize(("version", "case", "message"), [("2.0.0", "first", TOO_EARLY), ("2.0.6", "row", AGAIN)])
def test_batches_are_skipped(version, case, message):
    stock = run("amp_skipped_batch", Arm("pytorch-lightning", version), case)
    assert not stock.ok and message in stock.observations[0]["error"], stock
    shim = run("amp_skipped_batch", Arm("pytorch-lightning", version, shim=True), case, toggle="amp-skipped-batch")
    fixed = run("amp_skipped_batch", Arm("pytorch-lightning", "2.0.7"), case)
    assert shim.ok and fixed.ok, (shim, fixed)
    assert shim.observations == fixed.observations


def test_a_training_that_skips_nothing_is_the_same():
    stock = run("amp_skipped_batch", Arm("pytorch-lightning", "2.0.6"), "none_skipped")
    shim = run("amp_skipped_batch", Arm("pytorch-lightning", "2.0.6", shim=True), "none_skipped")
    assert stock.ok and shim.ok, (stock, shim)
    assert shim.observations == stock.observations
