"""From 2.6.0 on, the batch size finder returns max_val, or a size above it, without a trial."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


def seen(case, shim=True, toggle="batch-size-finder-limit", version="2.6.6"):
    result = run("batch_size_finder_limit", Variant("lightning", version, shim), case, toggle=toggle if shim else None)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", ["oom", "small", "trials"])
def test_search_that_ends_below_the_limit_is_unchanged(case):
    assert seen(case) == seen(case, shim=False)


PROOFS = tuple(
    Proof(
        "batch-size-finder-limit",
        sees(lambda seen: seen["found"] >= 20 and not seen["is_tried"]),
        case=case,
        recommended={"power": "trials", "binsearch": "binsearch-trials"}[case],
        since="2.6.0",
        right=sees(lambda seen: seen["found"] == seen["set"] == 12 and seen["is_tried"]),
    )
    for case in ("power", "binsearch")
)
