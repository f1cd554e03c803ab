"""Issue 20340: DDP does not synchronize parameters that are unfrozen after the start."""

import pytest

from tests.equivalence.proof import Proof, only
from tests.support.variants import Variant, run

pytestmark = pytest.mark.distributed
NAME = "ddp-with-unfrozen"


def are_alike(ranks):
    return len(ranks) == 2 and all(ranks[0][name] == ranks[1][name] for name in ("backbone", "head"))


@pytest.mark.parametrize(("version", "case"), [("2.0.0", "callback"), ("2.6.6", "callback"), ("2.6.6", "accumulated")])
def test_ranks_stay_equal_without_a_warning(version, case):
    stock = run("ddp_with_unfrozen", Variant("pytorch-lightning", version), case)
    assert stock.ok and not are_alike(stock.observations), stock
    shim = run("ddp_with_unfrozen", Variant("pytorch-lightning", version, shim=True), case, toggle=f"default,{NAME}")
    assert are_alike(shim.observations), shim
    assert [rank["warnings"] for rank in shim.observations] == [[], []]


PROOFS = tuple(
    Proof(
        NAME,
        lambda result: result.ok and not are_alike(result.observations),
        case=case,
        observed=only("backbone", "head"),
        recommended=f"{case}-lr",
        right=lambda result: are_alike(result.observations),
    )
    for case in ("hand", "normed")
)
