"""PR 21384: ModelParallelStrategy cannot save a model with a compiled part in a single file."""

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run

NAME = "compiled-sharded-checkpoint"


def test_uncompiled_model_is_saved_as_on_stock():
    stock, shim = (
        run("compiled_sharded_checkpoint", Variant("lightning", "2.6.0", on), "plain", simulated_cuda=True)
        for on in (False, True)
    )
    assert stock.ok and shim.observations == stock.observations, stock


PROOFS = (
    Proof(
        NAME,
        ends_with("KeyError: 'layer.weight'"),
        since="2.3.0",
        simulated_cuda=True,
        right=sees(lambda seen: seen["groups"] == [[0, 1]] and len(seen["momentum"]) == 2),
    ),
)
