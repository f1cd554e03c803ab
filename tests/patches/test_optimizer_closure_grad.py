"""PR 18268: an optimizer that calls its closure under torch.no_grad() cannot train."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run

PROOFS = (Proof("optimizer-closure-grad", ends_with("element 0 of tensors does not require grad")),)


@pytest.mark.parametrize(
    ("distribution", "version", "case"), [("pytorch-lightning", "2.0.0", ""), ("pytorch-lightning", "2.0.6", "")]
)
def test_training_goes_on(distribution, version, case):
    stock = run("optimizer_closure_grad", Arm(distribution, version), case)
    assert not stock.ok, stock
    assert "element 0 of tensors does not require grad" in stock.observations[0]["error"], stock

    shim = run("optimizer_closure_grad", Arm(distribution, version, shim=True), case, toggle="optimizer-closure-grad")
    assert shim.ok, shim
    official = run("optimizer_closure_grad", Arm(distribution, "2.0.7"), case)
    assert official.ok, official
    assert shim.observations == official.observations, (shim, official)
