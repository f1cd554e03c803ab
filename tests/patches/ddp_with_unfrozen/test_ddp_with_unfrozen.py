import pytest

from tests.support.programs import Program, only

pytestmark = pytest.mark.distributed
PROGRAM = Program("ddp-with-unfrozen", "2.6.6", "pytorch-lightning")


def are_alike(ranks):
    return len(ranks) == 2 and all(ranks[0][name] == ranks[1][name] for name in ("backbone", "head"))


@pytest.mark.parametrize(("version", "case"), [("2.0.0", "callback"), ("2.6.6", "callback"), ("2.6.6", "accumulated")])
def test_ranks_stay_equal_without_a_warning(version, case):
    stock = PROGRAM.stock(case, version)
    assert stock.ok and not are_alike(stock.observations), stock
    shim = PROGRAM.shim(case, version)
    assert are_alike(shim.observations), shim
    assert [rank["warnings"] for rank in shim.observations] == [[], []]


PROOFS = PROGRAM.proofs(
    lambda result: result.ok and not are_alike(result.observations),
    "hand",
    "normed",
    recommended="{}-lr",
    observed=only("backbone", "head"),
    right=lambda result: are_alike(result.observations),
)
