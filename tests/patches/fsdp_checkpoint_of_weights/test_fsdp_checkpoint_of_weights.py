"""PR 19524: FSDP cannot save the weights alone in shards."""

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run

NAME = "fsdp-checkpoint-of-weights"


def test_full_checkpoint_is_unchanged():
    stock, shim = (
        run("fsdp_checkpoint_of_weights", Variant("lightning", "2.2.1", on), "whole", simulated_cuda=True)
        for on in (False, True)
    )
    assert stock.ok and stock.observations[0]["optimizers"], stock
    assert shim.observations == stock.observations


PROOFS = (
    Proof(
        NAME,
        ends_with("KeyError: 'optimizer_states'"),
        since="2.1.0",
        simulated_cuda=True,
        one_card=True,
        right=sees(lambda seen: len(seen["model"]) == 2 and not seen["optimizers"] and "loops" in seen["rest"]),
    ),
)
