"""The programs of ``tests/differential/programs/broken_ranks.py`` over NCCL: two ranks need two GPUs."""

import pytest
import torch

from tests.differential.test_broken_ranks import assert_ends_as_on_stock


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two ranks over NCCL need two GPUs")
@pytest.mark.parametrize(
    "case", ["raises", "killed", "exits", "uneven", "stops", "stops-each", "uneven-sized", "waits"]
)
@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_ends_as_on_stock_over_nccl(version, case):
    assert_ends_as_on_stock(version, case, "nccl")
