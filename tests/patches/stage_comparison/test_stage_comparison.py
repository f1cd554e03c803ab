import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run

RELEASES = (("pytorch-lightning", "2.0.0"), ("lightning", "2.6.6"))


def both(release, case):
    """Return the observations, which must be equal in both variants, and the number of string comparisons."""
    stock = run("stage_comparison", Variant(*release), case)
    shim = run("stage_comparison", Variant(*release, shim=True), case, toggle="stage-comparison")
    assert stock.ok and shim.ok, (stock, shim)
    counts = [[rank.pop("counted") for rank in result.observations] for result in (stock, shim)]
    assert shim.observations == stock.observations
    assert shim.observations[0]["seen"]
    return counts


@pytest.mark.parametrize("release", RELEASES)
def test_each_hook_sees_the_stage_of_stock(release):
    (stock,), (shim,) = both(release, "plain")
    assert stock > 50 and shim < 5


@pytest.mark.parametrize("case", ["others", "compiled"])
@pytest.mark.parametrize("release", RELEASES)
def test_other_stages_compare_as_on_stock(release, case):
    both(release, case)


PROOFS = proofs(
    "stage-comparison",
    sees(lambda seen: seen["counted"] > 50),
    "plain",
    observed=lambda ranks: [{**rank, "counted": rank["counted"] > 50} for rank in ranks],
    recommended_observed=lambda ranks: [{**rank, "counted": False} for rank in ranks],
)
