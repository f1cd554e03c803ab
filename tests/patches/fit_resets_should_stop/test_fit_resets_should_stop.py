from tests.equivalence.proof import observes, proofs

# The Trainer's steps after the first fit, which stops at 2, and after the second, which can reach 10.
PROOFS = proofs("fit-resets-should-stop", observes({"steps": [2, 2]}), right=observes({"steps": [2, 10]}))
