from unittest.mock import Mock

from lightning_patches.patches.precision.clipping_of_scaled_gradients import are_scaled
from tests.support.programs import Program

PROGRAM = Program(
    "warn-clipping-of-scaled-gradients", "2.6.6", "pytorch-lightning", scenario="clipping_of_scaled_gradients"
)


def test_custom_scaler_is_not_called():
    scaler = Mock()
    assert not are_scaled(scaler, Mock())
    assert scaler.mock_calls == []
