"""PR 18280: what self.optimizers() shows after a checkpoint was loaded."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

PROOFS = (Proof("manual-optimizer-state", sees(lambda seen: seen["used"][-1] == [(0.1).hex()]), case="resume"),)


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("pytorch-lightning", "2.0.0", "several"), ("pytorch-lightning", "2.0.6", "resume")],
)
def test_a_rate_that_is_set_is_used(distribution, version, case):
    stock = run("manual_optimizer_state", Arm(distribution, version), case)
    assert stock.observations[0]["used"][-1][0] == (0.1).hex(), stock

    shim = run("manual_optimizer_state", Arm(distribution, version, shim=True), case, toggle="manual-optimizer-state")
    assert shim.ok, shim
    official = run("manual_optimizer_state", Arm(distribution, "2.0.7"), case)
    assert official.ok, official
    assert shim.observations == official.observations, (shim, official)
    assert shim.observations[0]["used"][-1][0] == (0.05).hex()
