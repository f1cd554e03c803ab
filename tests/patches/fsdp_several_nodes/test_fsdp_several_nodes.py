"""PR 17438: FSDP counts one node."""

from tests.equivalence.proof import Proof, observes

PROOFS = (
    Proof(
        "fsdp-several-nodes",
        observes({"nodes": 1, "ranks": 1, "share": {"num_replicas": 1, "rank": 1}}),
        simulated_cuda=True,
        one_card=True,
        right=observes({"nodes": 2, "ranks": 2, "share": {"num_replicas": 2, "rank": 1}}),
    ),
)
