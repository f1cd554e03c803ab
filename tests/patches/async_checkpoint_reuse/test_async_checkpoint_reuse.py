"""PR 20952: "cannot schedule new futures after shutdown" in the second run of a Trainer with AsyncCheckpointIO."""

from tests.differential.trial import difference
from tests.equivalence.proof import Proof, observes, sees
from tests.support.variants import Variant, run

ERROR = "RuntimeError: cannot schedule new futures after shutdown"


def test_second_validation_saves():
    stock = run("async_checkpoint_reuse", Variant("lightning", "2.5.3"), "validate")
    assert not stock.ok and stock.observations == [{"error": ERROR}], stock

    shim = run("async_checkpoint_reuse", Variant("lightning", "2.5.3", shim=True), "validate")
    assert shim.ok, shim
    official = run("async_checkpoint_reuse", Variant("lightning", "2.5.4"), "validate")
    assert shim.observations == official.observations, (shim, official)
    assert shim.observations[0]["files"] == ["epoch=0.ckpt"]


def test_custom_executor_is_kept():
    assert not difference("own_executor", "2.5.2", "async-checkpoint-reuse")


PROOFS = (
    Proof(
        "async-checkpoint-reuse",
        lambda result: not result.ok and observes({"error": ERROR})(result),
        case="fit",
        right=sees(lambda seen: seen["files"] == ["epoch=0.ckpt", "epoch=1.ckpt"]),
    ),
)
