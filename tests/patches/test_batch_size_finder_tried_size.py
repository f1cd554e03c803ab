"""PR 21187: the batch size finder returns a batch size that it never tried."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

PROOFS = (Proof("batch-size-finder-tried-size", sees(lambda seen: seen["found"] not in seen["tried"]), case="power"),)


@pytest.mark.parametrize(
    ("distribution", "version", "case"), [("pytorch-lightning", "2.0.0", "power"), ("lightning", "2.5.6", "power")]
)
def test_found_size_was_tried(distribution, version, case):
    stock = run("batch_size_finder_tried_size", Arm(distribution, version), case)
    assert stock.observations[0]["found"] == stock.observations[0]["set"] == 16, stock
    assert 16 not in stock.observations[0]["tried"], stock

    shim = run(
        "batch_size_finder_tried_size",
        Arm(distribution, version, shim=True),
        case,
        toggle="batch-size-finder-tried-size",
    )
    assert shim.ok, shim
    official = run("batch_size_finder_tried_size", Arm(distribution, "2.6.0"), case)
    assert official.ok, official
    assert shim.observations == official.observations, (shim, official)


@pytest.mark.parametrize("case", ["oom", "first", "small"])
def test_a_search_that_ends_by_itself_is_as_before(case):
    stock = run("batch_size_finder_tried_size", Arm("lightning", "2.5.6"), case)
    shim = run(
        "batch_size_finder_tried_size",
        Arm("lightning", "2.5.6", shim=True),
        case,
        toggle="batch-size-finder-tried-size",
    )
    assert stock.ok, stock
    assert shim.observations == stock.observations, (stock, shim)
