from tests.support.programs import Program, observes, sees

PROGRAM = Program("csv-logger-flush", "2.0.4")

ROWS = ["loss,step", "0.0,0", "1.0,1", "2.0,2", "3.0,3", "4.0,4"]

test_given_steps_are_logged_unchanged = PROGRAM.unchanged("step", check=observes({"before": ROWS[:5], "after": ROWS}))

test_custom_experiment_receives_unchanged_arguments = PROGRAM.unchanged(
    "own", check=observes({"steps": [None, 7, "saved"]})
)

PROOFS = PROGRAM.proofs(sees(lambda seen: seen["before"] is None))
