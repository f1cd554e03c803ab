from tests.support.programs import Program, observes

PROGRAM = Program("accumulation-of-last-window", "2.6.6", alone=True)

test_run_whose_batches_are_divided_evenly_is_unchanged = PROGRAM.unchanged("even")

PROOFS = PROGRAM.proofs(
    observes({"gradients": ["1", "1", "0.5"]}), recommended="scaled", right=observes({"gradients": ["1", "1", "1"]})
)
