"""PR 18092: manual optimization refuses a scheduler of one's own."""

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.variants import Variant, run

REFUSED = "doesn't follow PyTorch's LRScheduler API"


def test_automatic_optimization_still_refuses_the_scheduler():
    for shim in (False, True):
        assert ends_with(REFUSED)(
            run("manual_optimization_schedulers", Variant("pytorch-lightning", "2.0.5", shim), "automatic")
        )


PROOFS = (Proof("manual-optimization-schedulers", ends_with(REFUSED), right=observes({"rate": (0.25).hex()})),)
