from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("compiled-sharded-checkpoint", "2.6.0", options={"simulated_cuda": True})

test_uncompiled_model_is_saved_as_on_stock = PROGRAM.unchanged("plain")

PROOFS = PROGRAM.proofs(
    ends_with("KeyError: 'layer.weight'"),
    since="2.3.0",
    simulated_cuda=True,
    right=sees(lambda seen: seen["groups"] == [[0, 1]] and len(seen["momentum"]) == 2),
)
