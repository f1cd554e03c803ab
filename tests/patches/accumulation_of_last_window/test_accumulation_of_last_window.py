"""Issue 19987: gradients are accumulated over 4 of 10 batches."""

from tests.equivalence.proof import observes, proofs
from tests.support.variants import Variant, run

NAME = "accumulation-of-last-window"


def test_run_whose_batches_are_divided_evenly_is_unchanged():
    stock, shim = (
        run("accumulation_of_last_window", Variant("lightning", "2.6.6", shim), "even", toggle=NAME)
        for shim in (False, True)
    )
    assert stock.ok and stock.observations == shim.observations


PROOFS = proofs(
    NAME,
    observes({"gradients": ["1", "1", "0.5"]}),
    recommended="scaled",
    right=observes({"gradients": ["1", "1", "1"]}),
)
