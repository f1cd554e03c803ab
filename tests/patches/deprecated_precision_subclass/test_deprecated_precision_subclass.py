from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("deprecated-precision-subclass", "2.2.0", alone=True)

test_working_plugins_are_created_as_on_stock = PROGRAM.unchanged("PrecisionPlugin:0", "FSDPMixedPrecisionPlugin:1")

PROOFS = PROGRAM.proofs(
    ends_with("RecursionError: maximum recursion depth exceeded"),
    "PrecisionPlugin:1",
    "DoublePrecisionPlugin:1",
    "MixedPrecisionPlugin:2",
    since="2.2.0",
    right=sees(lambda seen: seen["steps"] == 2 and seen["made"] == "Mine"),
)
