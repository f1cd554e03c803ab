"""PR 18280: what self.optimizers() shows after a checkpoint was loaded."""

from tests.differential.trial import difference
from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


def test_wrapping_optimizer_steps():
    assert not difference("wrapping_optimizer", "2.0.0", "manual-optimizer-state")


PROOFS = (
    Proof(
        "manual-optimizer-state",
        sees(lambda seen: seen["used"][-1] == [(0.1).hex()]),
        case="resume",
        right=sees(lambda seen: seen["used"][-1] == [(0.05).hex()]),
    ),
)


def test_changed_learning_rate_is_used_by_several_optimizers():
    stock = run("manual_optimizer_state", Variant("pytorch-lightning", "2.0.0"), "several")
    assert stock.observations[0]["used"][-1][0] == (0.1).hex(), stock

    variant = Variant("pytorch-lightning", "2.0.0", shim=True)
    shim = run("manual_optimizer_state", variant, "several", toggle="manual-optimizer-state")
    assert shim.ok, shim
    official = run("manual_optimizer_state", Variant("pytorch-lightning", "2.0.7"), "several")
    assert official.ok, official
    assert shim.observations == official.observations, (shim, official)
    assert shim.observations[0]["used"][-1][0] == (0.05).hex()
