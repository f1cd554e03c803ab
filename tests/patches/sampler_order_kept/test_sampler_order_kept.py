import pytest

from tests.support.programs import Program, only

pytestmark = pytest.mark.distributed
NAME = "sampler-order-kept"
PROGRAM = Program(NAME, "2.6.6", "pytorch-lightning")
KEPT = [{"seen": 2 * list(range(15 - rank, -1, -2))} for rank in range(2)]


def test_warning_is_absent_where_the_order_is_kept():
    result = PROGRAM.shim()
    assert [rank["warnings"] for rank in result.observations] == [[], []], result


test_sampler_of_torch_is_shuffled_as_on_stock = PROGRAM.unchanged("torch", toggle=NAME)

PROOFS = PROGRAM.proofs(
    lambda result: all(rank["seen"] != right["seen"] for rank, right in zip(result.observations, KEPT)),
    recommended="divides",
    observed=only("seen"),
    right=lambda result: [{"seen": rank["seen"]} for rank in result.observations] == KEPT,
)
