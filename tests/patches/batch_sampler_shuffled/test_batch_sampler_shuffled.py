from typing import Any

import pytest

from tests.support.programs import Program

PROGRAM = Program("batch-sampler-shuffled", "2.4.0")

pytestmark = pytest.mark.distributed
IN_ORDER = [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]]

test_sequential_samplers_are_unchanged = PROGRAM.unchanged("ordered", check=lambda result: _in_order(result))

test_object_that_is_not_a_dataloader_sees_no_new_calls = PROGRAM.unchanged("own")


def _in_order(result: Any) -> bool:
    return [rank["seen"] for rank in result.observations] == IN_ORDER


def _shuffled(result: Any) -> bool:
    """True if the order has changed, and no item is there twice."""
    return not _in_order(result) and len({item for rank in result.observations for item in rank["seen"]}) == 12


PROOFS = PROGRAM.proofs(_in_order, "random", right=_shuffled)
