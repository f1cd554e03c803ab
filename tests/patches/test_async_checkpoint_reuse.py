"""PR 20952: "cannot schedule new futures after shutdown" in the second run of a Trainer with AsyncCheckpointIO."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run

ERROR = "RuntimeError: cannot schedule new futures after shutdown"


@pytest.mark.parametrize(
    ("distribution", "version", "case"), [("pytorch-lightning", "2.0.0", "fit"), ("lightning", "2.5.3", "validate")]
)
def test_second_run_saves(distribution, version, case):
    stock = run("async_checkpoint_reuse", Arm(distribution, version), case)
    assert not stock.ok and stock.observations == [{"error": ERROR}], stock

    shim = run("async_checkpoint_reuse", Arm(distribution, version, shim=True), case)
    assert shim.ok, shim
    official = run("async_checkpoint_reuse", Arm(distribution, "2.5.4"), case)
    assert shim.observations == official.observations, (shim, official)
    files = ["epoch=0.ckpt", "epoch=1.ckpt"]
    assert shim.observations[0]["files"] == (files if case == "fit" else files[:1])


PROOFS = (
    Proof(
        "async-checkpoint-reuse",
        ends_with("cannot schedule new futures after shutdown"),
        case="fit",
    ),
)
