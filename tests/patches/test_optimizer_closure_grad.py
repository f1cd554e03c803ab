"""PR 18268: an optimizer that calls its closure under torch.no_grad() cannot train."""

from tests.equivalence.proof import Proof, ends_with

PROOFS = (Proof("optimizer-closure-grad", ends_with("element 0 of tensors does not require grad")),)
