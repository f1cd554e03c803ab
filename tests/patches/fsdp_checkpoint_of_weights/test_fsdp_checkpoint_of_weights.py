from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("fsdp-checkpoint-of-weights", "2.2.1", options={"simulated_cuda": True})

test_full_checkpoint_is_unchanged = PROGRAM.unchanged("whole", check=sees(lambda seen: seen["optimizers"]))

PROOFS = PROGRAM.proofs(
    ends_with("KeyError: 'optimizer_states'"),
    since="2.1.0",
    simulated_cuda=True,
    one_card=True,
    right=sees(lambda seen: len(seen["model"]) == 2 and not seen["optimizers"] and "loops" in seen["rest"]),
)
