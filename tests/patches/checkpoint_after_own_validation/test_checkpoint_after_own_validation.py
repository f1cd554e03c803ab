"""Issue 20185: a checkpoint within an epoch is ranked by the previous validation instead of the one at its step."""

import pytest

from tests.equivalence.proof import only, proofs, sees
from tests.support.variants import Variant, run

NAME = "checkpoint-after-own-validation"


@pytest.mark.parametrize("case", ["subclass", "apart", "no-monitor", "epochs"])
def test_other_checkpoints_are_unchanged(case):
    stock = run("checkpoint_after_own_validation", Variant("lightning", "2.6.6"), case)
    shim = run("checkpoint_after_own_validation", Variant("lightning", "2.6.6", shim=True), case, toggle=NAME)
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


PROOFS = proofs(
    NAME,
    sees(lambda seen: seen["best"] != "step=4.ckpt"),
    "within",
    recommended="subclass",
    since="2.5.5",
    observed=only("best"),
    right=sees(lambda seen: seen["best"] == "step=4.ckpt"),
)
