import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run

NEWEST = ("lightning", "2.6.6")


def both(release, case):
    """Return the observations, which must be equal on stock and with the patch, and the number of ``inspect`` calls."""
    stock = run("hook_signature", Variant(*release), case)
    shim = run("hook_signature", Variant(*release, shim=True), case, toggle="hook-signature")
    assert stock.ok and shim.ok, (stock, shim)
    counts = [[rank.pop("counted") for rank in result.observations] for result in (stock, shim)]
    assert shim.observations == stock.observations
    return counts


@pytest.mark.parametrize("case", ["none", "varargs", "keyword", "loaders", "iterator"])
@pytest.mark.parametrize("release", [("pytorch-lightning", "2.0.0"), NEWEST])
def test_each_step_gets_the_arguments_of_stock(release, case):
    (stock,), (shim,) = both(release, case)
    assert stock > shim


@pytest.mark.parametrize("case", ["partial", "wrapped", "signature", "instance"])
def test_other_steps_are_inspected_as_on_stock(case):
    (stock,), (shim,) = both(NEWEST, case)
    assert stock >= shim > 0 or case == "instance"


PROOFS = proofs(
    "hook-signature",
    sees(lambda seen: seen["counted"] > 4),
    "plain",
    observed=lambda ranks: [{**rank, "counted": rank["counted"] > 0} for rank in ranks],
    recommended_observed=lambda ranks: [{**rank, "counted": False} for rank in ranks],
)
