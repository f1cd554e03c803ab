"""PR 17438: FSDP counts one node."""

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run


def test_custom_strategy_keeps_its_number():
    for shim in (False, True):
        result = run("fsdp_several_nodes", Variant("pytorch-lightning", "2.0.1", shim), "own")
        assert result.observations == [{"nodes": 4}], result


PROOFS = (
    Proof(
        "fsdp-several-nodes",
        observes({"nodes": 1, "ranks": 1, "share": {"num_replicas": 1, "rank": 1}}),
        simulated_cuda=True,
        one_card=True,
        right=observes({"nodes": 2, "ranks": 2, "share": {"num_replicas": 2, "rank": 1}}),
    ),
)
