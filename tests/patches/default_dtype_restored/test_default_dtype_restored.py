from tests.support.programs import Program, observes, sees

PROGRAM = Program("default-dtype-restored", "2.0.0")

test_default_dtype_of_the_user_is_restored = PROGRAM.fixed(
    "user",
    on=("2.0.0", "2.0.9"),
    bug=sees(lambda seen: seen["default"] == "torch.float64"),
    right=observes({"error": "diverged", "default": "torch.bfloat16", "made": "torch.bfloat16"}),
    like="2.1.0",
)

test_step_without_an_error_is_unchanged = PROGRAM.unchanged("well")

DOUBLE = sees(lambda seen: seen["default"] == "torch.float64")
SINGLE = observes({"error": "diverged", "default": "torch.float32", "made": "torch.float32"})
OWN = [
    observes({"error": None, "default": f"torch.{dtype}", "made": f"torch.{dtype}"}) for dtype in ("float32", "float64")
]
PROOFS = (
    *(PROGRAM.proof(DOUBLE, case=case, right=SINGLE) for case in ("trainer", "fabric")),
    PROGRAM.proof(OWN[0], case="own", right=OWN[1]),
)
