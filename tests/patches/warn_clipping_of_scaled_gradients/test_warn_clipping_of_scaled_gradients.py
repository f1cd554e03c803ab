"""Issue 18089: self.clip_gradients clips scaled gradients in 16-mixed precision. The patch only warns."""

from unittest.mock import Mock

import pytest

from lightning_patches.patches.precision.clipping_of_scaled_gradients import are_scaled
from tests.support.programs import Program

PROGRAM = Program(
    "warn-clipping-of-scaled-gradients", "2.6.6", "pytorch-lightning", scenario="clipping_of_scaled_gradients"
)


def seen(version, case, shim=True, toggle="default"):
    result = PROGRAM.run(case, version, shim=shim, toggle=toggle)
    assert result.ok, result
    found = result.observations[0]
    return found, found["warnings"]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_scaled_gradients_cause_a_warning_and_are_unchanged(version):
    stock, _ = seen(version, "two", shim=False)
    shim, (warning,) = seen(version, "two")
    assert shim["weights"] == stock["weights"]
    assert shim["asked"] == stock["asked"] + 1, "each time waits for the GPU"
    assert "clips to 0.01 are still scaled by 1024, so" in warning


@pytest.mark.parametrize("case", ["two-by-hand", "norm-by-hand", "automatic"])
def test_warning_is_absent_if_gradients_are_unscaled(case):
    assert seen("2.6.6", case)[1] == []


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    assert seen("2.6.6", "two", toggle="default,clipping-of-scaled-gradients")[1] == []


def test_custom_scaler_is_not_called():
    scaler = Mock()
    assert not are_scaled(scaler, Mock())
    assert scaler.mock_calls == []
