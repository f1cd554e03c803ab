from tests.support.programs import Program, sees

PROGRAM = Program("load-from-checkpoint-device", "2.0.1", options={"simulated_cuda": True})

test_model_on_the_cpu_is_unchanged = PROGRAM.unchanged(
    "cpu", "none", check=sees(lambda seen: {seen["device"], *seen["parameters"]} == {"cpu"})
)
test_datamodule_is_unchanged = PROGRAM.unchanged("data", check=sees(lambda seen: seen["device"] is None))

SHOWS = sees(lambda seen: seen["device"] == "cpu")
PROOFS = PROGRAM.proofs(SHOWS, "", "function", simulated_cuda=True, one_card=True)
