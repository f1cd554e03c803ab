"""PR 18710: a validation in the middle of an accumulation throws away the gradients."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run

PATCH = "accumulation-across-validation"
PROOFS = (
    Proof(
        PATCH,
        sees(lambda seen: seen["gradients"] == [None] * 4),
        case="automatic",
        observed=only("gradients", "weight"),
        note="how often zero_grad was called: 2.1.0 also calls it elsewhere",
    ),
)


@pytest.mark.parametrize("version", ["2.0.0", "2.0.9.post0"])
def test_gradients_are_kept(version):
    stock = run("accumulation_across_validation", Variant("pytorch-lightning", version), "automatic")
    assert stock.observations[0]["gradients"] == [None] * 4, stock
    shim = run(
        "accumulation_across_validation", Variant("pytorch-lightning", version, shim=True), "automatic", toggle=PATCH
    )
    assert shim.ok, shim
    official = run("accumulation_across_validation", Variant("pytorch-lightning", "2.1.0"), "automatic")
    for name in ("gradients", "weight"):
        assert shim.observations[0][name] == official.observations[0][name], (shim, official)
    assert shim.observations[0]["gradients"][0] == [((1 + 2) / 4).hex()]
    assert not shim.observations[0]["overridden"]


def test_hooks_find_the_real_zero_grad():
    shim = run("accumulation_across_validation", Variant("pytorch-lightning", "2.0.9", shim=True), "own", toggle=PATCH)
    assert shim.ok, shim
    assert shim.observations[0]["zeroed"] == 4 + 2, shim  # by the hook, and by the loop where a window is over


@pytest.mark.parametrize("case", ["validate", "asked"])
def test_run_without_accumulation_is_unchanged(case):
    stock = run("accumulation_across_validation", Variant("pytorch-lightning", "2.0.9"), case)
    shim = run("accumulation_across_validation", Variant("pytorch-lightning", "2.0.9", shim=True), case, toggle=PATCH)
    assert stock.ok, stock
    assert shim.observations == stock.observations, (stock, shim)
