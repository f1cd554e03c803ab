from tests.equivalence.proof import Proof, observes

# The Trainer's steps after the first fit, which stops at 2, and after the second, which can reach 10.
PROOFS = (Proof("fit-resets-should-stop", shows_bug=observes({"steps": [2, 2]}), right=observes({"steps": [2, 10]})),)
