from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("torchscript-check-inputs", "2.5.1", alone=True)

test_trace_on_the_cpu_is_unchanged = PROGRAM.unchanged("cpu", check=sees(lambda seen: not seen["hooked"]))
test_trace_with_a_hook_is_unchanged = PROGRAM.unchanged("hook", check=sees(lambda seen: seen["hooked"]))

PROOFS = PROGRAM.proofs(
    ends_with("RuntimeError: Expected all tensors to be on the same device"),
    "gpu",
    simulated_cuda=True,
    right=sees(lambda seen: seen["same"] and seen["left"] == "cpu"),
)
