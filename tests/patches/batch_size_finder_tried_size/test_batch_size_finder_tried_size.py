"""PR 21187: the batch size finder returns a batch size that it never tried."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

PROOFS = (
    Proof(
        "batch-size-finder-tried-size",
        sees(lambda seen: seen["found"] == seen["set"] == 16 and 16 not in seen["tried"]),
        case="power",
        right=sees(lambda seen: seen["found"] == seen["set"] and seen["found"] in seen["tried"]),
    ),
)


@pytest.mark.parametrize("case", ["oom", "first", "small"])
def test_search_that_ends_without_an_error_is_unchanged(case):
    stock = run("batch_size_finder_tried_size", Variant("lightning", "2.5.6"), case)
    shim = run(
        "batch_size_finder_tried_size",
        Variant("lightning", "2.5.6", shim=True),
        case,
        toggle="batch-size-finder-tried-size",
    )
    assert stock.ok, stock
    assert shim.observations == stock.observations, (stock, shim)
