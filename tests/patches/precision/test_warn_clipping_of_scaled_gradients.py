from unittest.mock import Mock

from lightning_patches.patches.precision.clipping_of_scaled_gradients import are_scaled


def test_custom_scaler_is_not_called():
    scaler = Mock()
    assert not are_scaled(scaler, Mock())
    assert scaler.mock_calls == []
