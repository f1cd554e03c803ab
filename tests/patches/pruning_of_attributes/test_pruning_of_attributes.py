from tests.equivalence.proof import ends_with, observes, proofs

PROOFS = proofs("pruning-of-attributes", ends_with("'bool' object has no attribute"), right=observes({"zeros": 32}))
