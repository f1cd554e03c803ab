from tests.support.programs import Program, observes

PROGRAM = Program("cli-seed-saved", "2.0.5")

test_given_seed_is_saved = PROGRAM.unchanged("given", check=observes({"seed": 3}))

PROOFS = PROGRAM.proofs(observes({"seed": True}), right=observes({"seed": 7}))
