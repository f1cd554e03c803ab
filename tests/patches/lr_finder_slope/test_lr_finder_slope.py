"""PR 21055: the learning rate finder suggests another point than the steepest one."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run

PROOFS = (
    Proof(
        "lr-finder-slope",
        sees(lambda seen: seen["suggested"] != seen["steepest"]),
        case="exponential",
        observed=only("suggested"),
        note="the losses, which show that the searches were the same up to rounding",
    ),
)


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("pytorch-lightning", "2.0.0", "exponential"), ("lightning", "2.5.2", "exponential")],
)
def test_steepest_point_is_suggested(distribution, version, case):
    stock = run("lr_finder_slope", Variant(distribution, version), case)
    assert stock.observations[0]["suggested"] != stock.observations[0]["steepest"], stock

    shim = run("lr_finder_slope", Variant(distribution, version, shim=True), case, toggle="lr-finder-slope")
    assert shim.ok, shim
    official = run("lr_finder_slope", Variant(distribution, "2.5.3"), case)
    assert official.ok, official
    assert shim.observations[0]["suggested"] == official.observations[0]["suggested"], (shim, official)
    assert shim.observations[0]["suggested"] == shim.observations[0]["steepest"]


def test_patch_is_opt_in():
    default = run("lr_finder_slope", Variant("lightning", "2.5.2", shim=True), "exponential")
    assert default.ok, default
    assert default.observations[0]["suggested"] != default.observations[0]["steepest"], default


def test_too_few_losses():
    shim = run("lr_finder_slope", Variant("lightning", "2.5.2", shim=True), "few", toggle="lr-finder-slope")
    assert shim.ok, shim
    assert shim.observations[0]["suggested"] is None
