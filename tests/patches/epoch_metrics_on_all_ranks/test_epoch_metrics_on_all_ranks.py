"""Issue 19604: rank zero reduces an epoch's metrics for its progress bar while rank one is in on_train_epoch_end."""

import pytest

from tests.equivalence.proof import proofs
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["no-hook", "own-bar", "single"])
def test_program_that_needs_no_fix_is_unchanged(case):
    stock, shim = (run("epoch_metrics_on_all_ranks", Variant("lightning", "2.6.6", on), case) for on in (False, True))
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


def _is_right(result):
    """True if both ranks have the mean of both ranks."""
    right = {"metric": [(1.0).hex(), (1.0).hex()], "loss": (3.0).hex()}
    return result.ok and result.observations == [right, right]


PROOFS = proofs(
    "epoch-metrics-on-all-ranks", lambda result: not _is_right(result), "bar", recommended="no-bar", right=_is_right
)
