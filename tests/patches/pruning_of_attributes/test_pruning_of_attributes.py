from tests.equivalence.proof import Proof, ends_with, observes

PROOFS = (Proof("pruning-of-attributes", ends_with("'bool' object has no attribute"), right=observes({"zeros": 32})),)
