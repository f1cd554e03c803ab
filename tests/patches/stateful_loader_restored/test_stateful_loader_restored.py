"""Issue 20550: a stateful DataLoader's state, where configure_optimizers reads estimated_stepping_batches."""

from functools import cache

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


@cache
def seen(distribution, version, case, shim=False):
    result = run("stateful_loader_restored", Variant(distribution, version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", ["not-estimated", "fresh"])
def test_correct_training_is_unchanged(case):
    assert seen("lightning", "2.6.6", case) == seen("lightning", "2.6.6", case, shim=True)


def test_manually_loaded_state_is_replaced_as_in_the_fixed_release():
    """By that of the checkpoint, of batch 2."""
    stock, shim, right = (
        run("stateful_loader_state_by_hand", Variant("lightning", "2.6.6", on), case)
        for on, case in ((False, "estimated"), (True, "estimated"), (False, "not-estimated"))
    )
    assert stock.ok and stock.observations == [{"restored": [4], "seen": [5, 6, 1, 2]}], stock
    assert shim.ok and shim.observations == [{"restored": [4, 2], "seen": [3, 4, 5, 6]}] == right.observations, shim


def test_release_without_loader_states_is_unchanged():
    assert seen("pytorch-lightning", "2.1.4", "estimated") == seen("pytorch-lightning", "2.1.4", "estimated", shim=True)


PROOFS = (
    Proof(
        "stateful-loader-restored",
        sees(lambda seen: seen["restored"] == [] and seen["seen"][0] == 1),
        case="estimated",
        recommended="not-estimated",
        since="2.2.0",
        right=sees(lambda seen: len(seen["restored"]) == 1 and seen["seen"][0] > 1),
    ),
)
