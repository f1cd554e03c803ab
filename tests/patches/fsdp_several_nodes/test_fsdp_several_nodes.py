from tests.support.programs import Program, observes

PROGRAM = Program("fsdp-several-nodes", "2.0.1")

test_custom_strategy_keeps_its_number = PROGRAM.unchanged("own", check=observes({"nodes": 4}))

PROOFS = PROGRAM.proofs(
    observes({"nodes": 1, "ranks": 1, "share": {"num_replicas": 1, "rank": 1}}),
    simulated_cuda=True,
    one_card=True,
    right=observes({"nodes": 2, "ranks": 2, "share": {"num_replicas": 2, "rank": 1}}),
)
