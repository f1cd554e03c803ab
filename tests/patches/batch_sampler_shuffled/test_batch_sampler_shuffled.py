"""Issue 20326: under DDP a batch sampler that shuffles does not, in validation."""

from typing import Any

import pytest

from tests.equivalence.proof import Proof
from tests.support.variants import Variant, run

pytestmark = pytest.mark.distributed
IN_ORDER = [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]]


def test_sequential_samplers_are_unchanged():
    result = run("batch_sampler_shuffled", Variant("lightning", "2.4.0", shim=True), "ordered")
    assert result.ok and _in_order(result), result


def test_object_that_is_not_a_dataloader_sees_no_new_calls():
    stock, shim = (run("batch_sampler_shuffled", Variant("lightning", "2.4.0", on), "own") for on in (False, True))
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


def _in_order(result: Any) -> bool:
    return [rank["seen"] for rank in result.observations] == IN_ORDER


def _shuffled(result: Any) -> bool:
    """In another order, and no item twice."""
    return not _in_order(result) and len({item for rank in result.observations for item in rank["seen"]}) == 12


PROOFS = (Proof("batch-sampler-shuffled", _in_order, case="random", right=_shuffled),)
