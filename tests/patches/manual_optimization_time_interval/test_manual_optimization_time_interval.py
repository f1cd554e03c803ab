from tests.support.programs import Program, only, sees

PROGRAM = Program("manual-optimization-time-interval", "2.6.6", toggle="all")

test_other_intervals_save_as_on_stock = PROGRAM.unchanged(
    "automatic", "steps", check=sees(lambda seen: seen["steps"] == [1, 2, 3, 4])
)
test_interval_that_has_not_passed_saves_nothing = PROGRAM.unchanged(
    "hour", check=sees(lambda seen: seen["steps"] == [])
)
test_scheduler_waits_for_a_metric_of_the_validation = PROGRAM.fixed(
    "monitor", bug=sees(lambda seen: seen["steps"] == []), right=sees(lambda seen: seen["steps"] == [2, 3, 4])
)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["steps"] == []),
    recommended="steps",
    observed=only("steps", "weights", "trained"),
    right=sees(lambda seen: seen["steps"] == [1, 2, 3, 4] and seen["weights"][-1] == seen["trained"]),
)
