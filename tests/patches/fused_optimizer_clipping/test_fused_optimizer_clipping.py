"""Issue 21435: gradient clipping with a fused optimizer is refused in bf16-mixed precision."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.variants import Variant, run

MESSAGE = "does not allow for gradient clipping because it performs unscaling of gradients internally"
PROOFS = (
    Proof("fused-optimizer-clipping", ends_with(MESSAGE), case="fused", recommended="by_hand"),
    Proof("fused-optimizer-clipping", ends_with(MESSAGE), case="value", recommended="value_by_hand"),
)


@pytest.mark.parametrize(
    ("distribution", "version", "case", "by_hand"),
    [
        ("pytorch-lightning", "2.0.0", "fused", "by_hand"),
        ("lightning", "2.1.1", "value", "value_by_hand"),
        ("lightning", "2.6.6", "manual", None),
    ],
)
def test_gradients_are_clipped(distribution, version, case, by_hand):
    stock = run("fused_optimizer_clipping", Variant(distribution, version), case)
    assert not stock.ok, stock
    assert MESSAGE in stock.observations[0]["error"], stock

    shim = run(
        "fused_optimizer_clipping", Variant(distribution, version, shim=True), case, toggle="fused-optimizer-clipping"
    )
    assert shim.ok, shim
    if by_hand is not None:
        recommended = run("fused_optimizer_clipping", Variant(distribution, version), by_hand)
        assert shim.observations == recommended.observations, (shim, recommended)


@pytest.mark.parametrize("case", ["by_hand", "value_by_hand"])
def test_manual_clipping_is_unchanged(case):
    stock, shim = (
        run("fused_optimizer_clipping", Variant("lightning", "2.6.6", shim=on), case) for on in (False, True)
    )
    assert stock.ok and shim.ok and shim.observations == stock.observations, shim
