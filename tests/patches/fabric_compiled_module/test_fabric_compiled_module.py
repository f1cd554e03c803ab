from tests.support.programs import COMPILE, Program, ends_with, sees

PROGRAM = Program("fabric-compiled-module", "2.6.6")

NO_LENGTH = "Net does not support len()"

test_compiled_module_trains = PROGRAM.fixed(on=("2.0.0", "2.1.4"), bug=ends_with(NO_LENGTH), reference="plain")

test_strategy_may_return_an_object_that_is_not_a_module = PROGRAM.unchanged(
    "function", on=("2.2.5", "2.6.6"), check=sees(lambda seen: bool(seen["module"]))
)

PROOFS = PROGRAM.proofs(
    ends_with(NO_LENGTH), "kept", recommended="plain", right=sees(lambda seen: bool(seen["module"])), needs=(COMPILE,)
)
