"""Issue 21454: under DDP a user's sampler is never told which epoch it is."""

from typing import Any

import pytest

from tests.equivalence.proof import Observations, Proof
from tests.support.arms import Arm, run

pytestmark = pytest.mark.distributed
EPOCHS = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
AFTER_THEM = [12, 13, 14, 15]
STUCK = EPOCHS[0]


def drawn(arm, case="ddp"):
    """Items that all ranks together saw, sorted: one list per epoch of fit, and that of predict."""
    result = run("sampler_set_epoch", arm, case)
    assert result.ok, result
    ranks = result.observations
    assert len(ranks) == (2 if case == "ddp" else 1), result
    epochs = [sorted(sum(epoch, [])) for epoch in zip(*(rank["fit"] for rank in ranks))]
    return epochs, sorted(sum((rank["predict"] for rank in ranks), []))


@pytest.fixture(scope="module")
def one_device():
    return drawn(Arm("lightning", "2.6.6"), "one")


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.6.0")])
def test_ranks_together_see_what_one_device_sees(distribution, version, one_device):
    assert one_device == (EPOCHS, AFTER_THEM)
    assert drawn(Arm(distribution, version)) == ([STUCK, STUCK, STUCK], STUCK)
    assert drawn(Arm(distribution, version, shim=True)) == one_device


def test_official_fix_leaves_predict_out(one_device):
    assert drawn(Arm("lightning", "2.6.6")) == (EPOCHS, STUCK)
    assert drawn(Arm("lightning", "2.6.6", shim=True)) == one_device


def _in_one_set(observations: Observations) -> Any:
    """The items that all ranks together have drawn, sorted: the wrapper shuffles what the sampler gives."""
    return {
        "fit": [sorted(sum(epoch, [])) for epoch in zip(*(rank["fit"] for rank in observations))],
        "predict": sorted(sum((rank["predict"] for rank in observations), [])),
    }


def _stuck(result: Any) -> bool:
    """Every epoch of fit with the same items, or predict with those of epoch 0."""
    if len(result.observations) < 2:
        return False
    seen = _in_one_set(result.observations)
    return bool(seen["fit"][0] == seen["fit"][1] or seen["predict"] == seen["fit"][0])


PROOFS = (Proof("sampler-set-epoch", _stuck, case="ddp", observed=_in_one_set, recommended="one"),)
