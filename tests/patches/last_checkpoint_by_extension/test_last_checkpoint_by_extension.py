from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("last-checkpoint-by-extension", "2.1.2", "pytorch-lightning")

test_renamed_checkpoint_is_found_as_on_stock = PROGRAM.unchanged("byhand", check=observes({"steps": 3}))

PROOFS = PROGRAM.proofs(ends_with("UnpicklingError"), right=observes({"steps": 3}))
