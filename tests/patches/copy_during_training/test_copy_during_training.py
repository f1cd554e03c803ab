"""PR 17130: a LightningModule cannot be copied or pickled while its DataLoader is iterated."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

CASES = ("deepcopy", "pickle", "trainer", "workers")


def seen(version, case, shim=False):
    result = run("copy_during_training", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


def test_module_is_copied():
    assert seen("2.0.0", "deepcopy")["error"] == "('{} cannot be pickled', '_SingleProcessDataLoaderIter')"
    assert seen("2.0.0", "deepcopy", shim=True) == {"error": None, "steps": 4, "equal": True}


@pytest.mark.parametrize("case", ["loader", "after"])
def test_picklable_module_is_unchanged(case):
    assert seen("2.0.0", case, shim=True) == seen("2.0.0", case)


FAILS = sees(lambda seen: "cannot be pickled" in (seen["error"] or ""))
COPIES = sees(lambda seen: seen["equal"] and seen["steps"] == 4)
PROOFS = tuple(Proof("copy-during-training", FAILS, case=case, right=COPIES) for case in CASES)
