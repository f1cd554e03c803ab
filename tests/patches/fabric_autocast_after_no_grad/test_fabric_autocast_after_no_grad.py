import pytest

from tests.equivalence.proof import Proof
from tests.patches.autocast_after_no_grad import test_autocast_after_no_grad as trainer

NAME = "fabric-autocast-after-no-grad"
PROOFS = (
    Proof(NAME, trainer.untrained, "forward", recommended="forward_by_hand", old_torch=True),
    Proof(NAME, trainer.untrained, "autocast", recommended="autocast_by_hand", old_torch=True),
)
with_old_torch = trainer.needs_old_torch


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("pytorch-lightning", "2.0.0", "decorated"), ("lightning", "2.2.5", "forward")],
)
def test_layers_get_their_gradients(with_old_torch, distribution, version, case):
    trainer.layers_get_their_gradients(NAME, distribution, version, case)


def test_nothing_changes_with_a_fixed_torch():
    trainer.nothing_changes_with_a_torch_that_is_right(NAME, "lightning", "2.6.6", "forward")
