"""Issue 21447: an ordered sampler is shuffled where there are several ranks."""

import pytest

from tests.equivalence.proof import Proof, only
from tests.support.variants import Variant, run

pytestmark = pytest.mark.distributed
NAME = "sampler-order-kept"
KEPT = [{"seen": 2 * list(range(15 - rank, -1, -2))} for rank in range(2)]


def test_nothing_is_warned_of_where_the_order_is_kept():
    result = run("sampler_order_kept", Variant("pytorch-lightning", "2.6.6", shim=True), toggle=f"default,{NAME}")
    assert [rank["warnings"] for rank in result.observations] == [[], []], result


def test_sampler_of_torch_is_shuffled_as_on_stock():
    stock, shim = (
        run("sampler_order_kept", Variant("pytorch-lightning", "2.6.6", on), "torch", toggle=NAME if on else None)
        for on in (False, True)
    )
    assert stock.ok and shim.observations == stock.observations


PROOFS = (
    Proof(
        NAME,
        lambda result: all(rank["seen"] != right["seen"] for rank, right in zip(result.observations, KEPT)),
        observed=only("seen"),
        recommended="divides",
        right=lambda result: [{"seen": rank["seen"]} for rank in result.observations] == KEPT,
    ),
)
