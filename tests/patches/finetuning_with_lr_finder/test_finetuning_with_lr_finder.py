"""PR 21224: KeyError: 0 with LearningRateFinder and BackboneFinetuning."""

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run

PROOFS = (
    Proof(
        "finetuning-with-lr-finder",
        ends_with("KeyError: 0"),
        case="finder",
        right=sees(lambda seen: seen["groups"][-2:] == [[2, 2], [2, 2]]),
    ),
)


def test_resuming_restores_the_groups_as_on_stock():
    stock = run("finetuning_with_lr_finder", Variant("lightning", "2.5.6"), "resume")
    shim = run(
        "finetuning_with_lr_finder",
        Variant("lightning", "2.5.6", shim=True),
        "resume",
        toggle="finetuning-with-lr-finder",
    )
    assert stock.observations[0]["groups"] == [[2, 2]], stock
    assert shim.observations == stock.observations, (stock, shim)
