from tests.support.programs import Program, only, sees

PROGRAM = Program("spawned-parameters", "2.0.7")

test_script_sees_the_parameters_of_one_process = PROGRAM.unchanged("one")
test_model_has_no_more_parameter_calls_than_on_stock = PROGRAM.unchanged("asked", observed=only("asked"))

SHARED = sees(lambda seen: seen["weight"] == (3.0).hex())
PROOFS = PROGRAM.proofs(SHARED, "trainer", "fabric")
