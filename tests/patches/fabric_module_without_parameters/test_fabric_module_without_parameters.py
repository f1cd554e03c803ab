from tests.support.programs import Program, ends_with, proofs, sees

CASES = ("setup", "setup_stay", "setup_module", "setup_module_stay")
PROOFS = proofs(
    "fabric-module-without-parameters",
    ends_with("StopIteration"),
    *CASES,
    right=sees(lambda seen: seen["state"] == ["weight"]),
)

PROGRAM = Program("fabric-module-without-parameters", "2.0.1", "pytorch-lightning")

test_module_has_no_more_parameter_calls_than_on_stock = PROGRAM.unchanged("asked")
