"""PR 21380, issue 19674: every rank asks the storage at each save, and needs access to it."""

import pytest

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run

pytestmark = pytest.mark.distributed
NAME = "checkpoint_exists_on_rank_zero"


def is_denied(result):
    return not result.ok and "PermissionError: rank 1 has no access to bucket://checkpoints/best" in result.output


def test_only_rank_zero_queries_the_file_system():
    stock, shim, fixed = (
        run(NAME, variant, "asked").observations
        for variant in (
            Variant("lightning", "2.5.6"),
            Variant("lightning", "2.5.6", shim=True),
            Variant("lightning", "2.6.0"),
        )
    )
    assert stock == [{"questions": 2}, {"questions": 2}]
    assert shim == fixed == [{"questions": 2}, {"questions": 0}]


@pytest.mark.parametrize("version", ["2.1.0", "2.5.6"])
def test_all_ranks_get_the_name(version):
    """The second fit finds the first one's file, and adds a version to the name, in every rank."""
    stock = run(NAME, Variant("lightning", version), "version")
    shim = run(NAME, Variant("lightning", version, shim=True), "version", toggle="checkpoint-exists-on-rank-zero")
    assert stock.ok and shim.ok, shim
    assert shim.observations == stock.observations
    first, second = shim.observations[0]["names"]
    assert shim.observations[1]["names"] == [first, second] and "-v" in second and first != second


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.9"), ("lightning", "2.5.6")])
@pytest.mark.parametrize("case", ["own-broadcast", "proxy", "property"])
def test_custom_broadcast_of_a_strategy_is_called(distribution, version, case):
    stock, shim = (run(NAME, Variant(distribution, version, shim=on), case) for on in (False, True))
    assert stock.observations == shim.observations == [{"exists": True}], shim


PROOFS = (
    Proof("checkpoint-exists-on-rank-zero", is_denied, case="denied", right=observes({"saved": True}, {"saved": True})),
)
