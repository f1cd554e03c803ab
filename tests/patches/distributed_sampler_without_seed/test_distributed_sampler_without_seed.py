from functools import cache

import pytest

from tests.differential.trial import difference
from tests.support.programs import Program

pytestmark = pytest.mark.distributed
NAME = "distributed-sampler-without-seed"
PROGRAM = Program(NAME, "2.0.2", alone=True)
ALL_ITEMS = list(range(16))


@cache
def items(version, case, shim=False):
    """Return the items of each rank in each epoch, in the order of its batches."""
    result = PROGRAM.run(case, version, shim=shim)
    assert result.ok and len(result.observations) == 2, result
    return [rank["epochs"] for rank in result.observations]


def shared_out(ranks):
    """True if each item belongs to exactly one rank in every epoch."""
    return all(sorted(sum(epoch, [])) == ALL_ITEMS for epoch in zip(*ranks))


def test_ranks_seeded_alike_get_the_order_of_the_later_releases():
    assert shared_out(items("2.0.2", "seeded"))
    assert items("2.0.2", "seeded") != items("2.0.3", "seeded")
    assert items("2.0.2", "seeded", shim=True) == items("2.0.3", "seeded")


def test_order_with_a_custom_seed_is_unchanged():
    stock = items("2.0.2", "generator")
    assert shared_out(stock)
    assert items("2.0.2", "generator", shim=True) == stock


def test_limit_of_half_the_items_is_unchanged():
    stock = items("2.0.2", "some")
    assert [[len(epoch) for epoch in rank] for rank in stock] == [[4, 4]] * 2
    assert items("2.0.2", "some", shim=True) == stock
    assert [[len(epoch) for epoch in rank] for rank in items("2.0.3", "some")] == [[8, 8]] * 2


def test_dataset_with_a_custom_sampler_has_no_more_length_calls_than_on_stock():
    assert not difference("samplers", "2.0.2", NAME, "overridden")


def _ranks_overlap(result):
    epochs = [sum(epoch, []) for epoch in zip(*(rank["epochs"] for rank in result.observations))]
    return bool(epochs) and any(len(set(epoch)) < len(epoch) for epoch in epochs)


def _shared_out_anew(result):
    ranks = [rank["epochs"] for rank in result.observations]
    return len(ranks) == 2 and shared_out(ranks) and ranks[0][0] != ranks[0][1]


PROOFS = PROGRAM.proofs(_ranks_overlap, "shuffled", right=_shared_out_anew)
