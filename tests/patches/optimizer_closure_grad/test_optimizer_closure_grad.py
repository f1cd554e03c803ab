"""PR 18268: an optimizer that calls its closure under torch.no_grad() cannot train."""

from tests.differential.trial import difference
from tests.equivalence.proof import Proof, ends_with
from tests.support.variants import Variant, run


def test_custom_backward_without_gradients_works():
    stock, shim = (
        run("optimizer_closure_grad", Variant("pytorch-lightning", "2.0.0", on), "own") for on in (False, True)
    )
    assert stock.ok and stock.observations[0]["with_gradients"] is False, stock
    assert shim.observations == stock.observations, shim


def test_overridden_trainer_properties_are_not_read():
    assert not difference("callers", "2.0.6", "optimizer-closure-grad", "properties")


PROOFS = (Proof("optimizer-closure-grad", ends_with("element 0 of tensors does not require grad")),)
