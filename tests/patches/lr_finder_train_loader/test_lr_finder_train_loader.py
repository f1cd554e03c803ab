"""Pull request 21056: after the learning rate finder, the first epoch of training is not whole."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

SCENARIO = "lr_finder_train_loader"
TOGETHER = "lr-finder-restarting-flag,lr-finder-val-loader,lr-finder-train-loader,lr-finder-applies-lr"


def _whole(seen):
    """Every epoch has all batches, and ends with a whole validation."""
    epochs = "0", "1", "2", "3"
    return seen["batches"] == dict.fromkeys(epochs, 16) and seen["validated"] == dict.fromkeys(epochs, 4)


PROOFS = (
    Proof(
        "lr-finder-train-loader",
        sees(lambda seen: seen["batches"]["0"] < 16 and "0" not in seen["validated"]),
        case="callback",
        right=sees(_whole),
    ),
    Proof(
        "lr-finder-train-loader",
        sees(lambda seen: seen["batches"]["0"] == 10 and "0" not in seen["validated"]),
        case="shuffle",
        right=sees(_whole),
    ),
)


def observed(variant, case="", toggle=None):
    result = run(SCENARIO, variant, case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(
    ("distribution", "version", "case", "left"),
    [
        ("lightning", "2.1.0", "workers", 10),
        ("lightning", "2.3.3", "milestones", 10),
    ],
)
def test_first_epoch_is_whole(distribution, version, case, left):
    stock = observed(Variant(distribution, version), case)
    assert stock["batches"]["0"] == left, stock
    assert "0" not in stock["validated"], stock
    shim = observed(Variant(distribution, version, shim=True), case, toggle="lr-finder-train-loader")
    assert shim["batches"] == {"0": 16, "1": 16, "2": 16, "3": 16}
    assert shim["validated"] == {"0": 4, "1": 4, "2": 4, "3": 4}
    assert shim == observed(Variant(distribution, "2.5.3"), case)


@pytest.mark.distributed
def test_two_ranks():
    stock = run(SCENARIO, Variant("lightning", "2.4.0"), "ddp")
    assert stock.ok, stock
    assert [rank["batches"]["0"] for rank in stock.observations] == [5, 5], stock
    shim = run(SCENARIO, Variant("lightning", "2.4.0", shim=True), "ddp", toggle=TOGETHER)
    assert shim.ok, shim
    assert [rank["batches"]["0"] for rank in shim.observations] == [8, 8], shim
    assert shim.observations == run(SCENARIO, Variant("lightning", "2.5.3"), "ddp").observations
