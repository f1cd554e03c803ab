"""PR 21652: BackboneFinetuning(train_bn=False) trains batch norm while the backbone is frozen."""

import pytest

from tests.differential.trial import difference
from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

UNTOUCHED = {"mean": [(0.0).hex()] * 2, "weight": [(1.0).hex()] * 2}


def seen(distribution, version, case="", shim=False):
    result = run("frozen_batch_norm", Variant(distribution, version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", ["train", "own", "by-hand"])
def test_other_runs_train_as_on_stock(case):
    assert seen("lightning", "2.6.6", case) == seen("lightning", "2.6.6", case, shim=True)


def test_unfrozen_it_counts_again():
    shim = seen("lightning", "2.6.6", "unfrozen", shim=True)
    assert shim["mean"] != UNTOUCHED["mean"] and shim["weight"] == UNTOUCHED["weight"]


def test_custom_freeze_is_called_as_on_stock():
    assert not difference("replaced_freeze", "2.6.6", "frozen-batch-norm")


PROOFS = (Proof("frozen-batch-norm", sees(lambda seen: seen["learns"]), recommended="by-hand"),)
