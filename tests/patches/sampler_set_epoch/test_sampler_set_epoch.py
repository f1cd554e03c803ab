from typing import Any

import pytest

from tests.support.programs import Observations, Program, proofs

pytestmark = pytest.mark.distributed
NAME = "sampler-set-epoch"
TOLD_BY_HAND = Program(NAME, "2.6.0", alone=True, scenario="sampler_told_by_hand")
EPOCHS = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
AFTER_THEM = [12, 13, 14, 15]


def _drawn(*items: int) -> Any:
    """Return a check that the ranks together drew these items."""
    return lambda result: sorted(item for rank in result.observations for item in rank["seen"]) == sorted(items)


test_scripts_call_of_set_epoch_is_kept = TOLD_BY_HAND.unchanged(
    "told", on=("2.2.5", "2.6.0"), check=_drawn(*range(4), *range(8, 12), *range(16, 20))
)
test_sampler_without_set_epoch_is_unchanged = TOLD_BY_HAND.unchanged(
    "without", on=("2.2.5", "2.6.0"), check=_drawn(*3 * list(range(4)))
)


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
