from typing import Any

import pytest

from tests.equivalence.proof import Observations, proofs
from tests.support.programs import Program
from tests.support.variants import Variant, run

pytestmark = pytest.mark.distributed
NAME = "sampler-set-epoch"
PROGRAM = Program(NAME, "2.6.0", alone=True, scenario="sampler_told_by_hand")
EPOCHS = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
AFTER_THEM = [12, 13, 14, 15]
STUCK = EPOCHS[0]


def drawn(variant, case="ddp"):
    """Return the sorted items of all ranks: a list for each epoch of fit, and one for predict."""
    result = run("sampler_set_epoch", variant, case, toggle=NAME if variant.shim else None)
    assert result.ok, result
    ranks = result.observations
    assert len(ranks) == (2 if case == "ddp" else 1), result
    epochs = [sorted(sum(epoch, [])) for epoch in zip(*(rank["fit"] for rank in ranks))]
    return epochs, sorted(sum((rank["predict"] for rank in ranks), []))


@pytest.fixture(scope="module")
def one_device():
    return drawn(Variant("lightning", "2.6.6"), "one")


def test_predict_is_unchanged_as_in_the_official_fix(one_device):
    assert drawn(Variant("lightning", "2.6.6")) == (EPOCHS, STUCK)
    assert drawn(Variant("lightning", "2.6.6", shim=True)) == one_device


@pytest.mark.parametrize("case", ["told", "without"])
@pytest.mark.parametrize("version", ["2.2.5", "2.6.0"])
def test_scripts_set_epoch_is_kept(version, case):
    """The script calls set_epoch, or its sampler has no such method."""
    stock, shim = PROGRAM.both(case, version)
    assert stock.ok and shim.ok and shim.observations == stock.observations, (stock, shim)
    drawn = sorted(item for rank in stock.observations for item in rank["seen"])
    assert drawn == sorted([*range(4), *range(8, 12), *range(16, 20)] if case == "told" else 3 * list(range(4)))


def _in_one_set(observations: Observations) -> Any:
    """Return the sorted items of all ranks, since the wrapper shuffles those of the sampler."""
    return {
        "fit": [sorted(sum(epoch, [])) for epoch in zip(*(rank["fit"] for rank in observations))],
        "predict": sorted(sum((rank["predict"] for rank in observations), [])),
    }


def _stuck(result: Any) -> bool:
    """True if every epoch of fit has the same items, or predict has those of epoch 0."""
    if len(result.observations) < 2:
        return False
    seen = _in_one_set(result.observations)
    return bool(seen["fit"][0] == seen["fit"][1] or seen["predict"] == seen["fit"][0])


def _goes_on(result: Any) -> bool:
    return bool(_in_one_set(result.observations) == {"fit": EPOCHS, "predict": AFTER_THEM})


PROOFS = proofs(NAME, _stuck, "ddp", recommended="one", observed=_in_one_set, right=_goes_on)
