import pytest

from tests.support.programs import Program, observes

PROGRAM = Program("checkpoint-exists-on-rank-zero", "2.5.6", alone=True)

pytestmark = pytest.mark.distributed


def is_denied(result):
    return not result.ok and "PermissionError: rank 1 has no access to bucket://checkpoints/best" in result.output


test_only_rank_zero_queries_the_file_system = PROGRAM.fixed(
    "asked",
    bug=observes({"questions": 2}, {"questions": 2}),
    right=observes({"questions": 2}, {"questions": 0}),
    like="2.6.0",
    toggle="default",
)


@pytest.mark.parametrize("version", ["2.1.0", "2.5.6"])
def test_all_ranks_get_the_name(version):
    """The second fit finds the first one's file, and adds a version to the name, in every rank."""
    stock = PROGRAM.stock("version", version)
    shim = PROGRAM.shim("version", version)
    assert stock.ok and shim.ok, shim
    assert shim.observations == stock.observations
    first, second = shim.observations[0]["names"]
    assert shim.observations[1]["names"] == [first, second] and "-v" in second and first != second


test_custom_broadcast_of_a_strategy_is_called = PROGRAM.unchanged(
    "own-broadcast", "proxy", "property", on=("2.0.9", "2.5.6"), check=observes({"exists": True}), toggle="default"
)

PROOFS = PROGRAM.proofs(is_denied, "denied", right=observes({"saved": True}, {"saved": True}))
