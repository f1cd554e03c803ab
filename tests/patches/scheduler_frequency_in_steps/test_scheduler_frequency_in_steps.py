from tests.support.programs import Program, observes

PROGRAM = Program("scheduler-frequency-in-steps", "2.6.6", alone=True)

test_frequency_that_divides_the_length_of_an_epoch_is_unchanged = PROGRAM.unchanged("divides")

PROOFS = PROGRAM.proofs(
    observes({"rates": ["1"] * 8}),
    recommended="recommended",
    right=observes({"rates": ["1"] * 3 + ["0.5"] * 3 + ["0.25"] * 2}),
)
