"""Issue 20326: the first release with its fix fails where a batch sampler has no sampler."""

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run

SCENARIO = "batch_sampler_without_sampler"
NO_SAMPLER = "object has no attribute 'sampler'"


def test_validation_runs():
    stock = run(SCENARIO, Arm("lightning", "2.5.0"))
    assert not stock.ok and NO_SAMPLER in stock.output, stock
    fixed = run(SCENARIO, Arm("lightning", "2.5.0.post0"))
    assert fixed.ok and fixed.observations == [{"seen": [0, 8, 1, 9, 2, 10]}], fixed
    shim = run(SCENARIO, Arm("lightning", "2.5.0", shim=True))
    assert shim.ok and shim.observations == fixed.observations, shim


PROOFS = (Proof("batch-sampler-without-sampler", ends_with(NO_SAMPLER)),)
