"""PR 18129: the learning rate finder ends in an error where training_step skips a batch."""

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run


def test_search_without_skipped_batches_is_unchanged():
    stock, shim = (
        run("lr_finder_skipped_batch", Variant("pytorch-lightning", "2.0.6", s), "all") for s in (False, True)
    )
    assert stock.ok, stock
    assert stock.observations == shim.observations
    assert stock.observations[0]["skipped"] == []


PROOFS = (
    Proof("lr-finder-skipped-batch", ends_with("KeyError: 'loss'"), right=sees(lambda seen: seen["skipped"] == [2])),
)
