from unittest.mock import Mock

import pytest

from lightning_patches.patches.precision.clipping_of_scaled_gradients import are_scaled
from tests.support.programs import Program, only

PROGRAM = Program(
    "warn-clipping-of-scaled-gradients", "2.6.6", "pytorch-lightning", scenario="clipping_of_scaled_gradients"
)


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_scaled_gradients_cause_a_warning_and_are_unchanged(version):
    stock, shim = (result.facts for result in PROGRAM.both("two", version))
    assert shim["weights"] == stock["weights"]
    assert shim["asked"] == stock["asked"], "each call waits for the GPU"
    (warning,) = shim["warnings"]
    assert "clips to 0.01 are still scaled by 1024, so" in warning


test_warning_is_absent_if_gradients_are_unscaled = PROGRAM.unchanged(
    "two-by-hand", "norm-by-hand", "automatic", observed=only("warnings")
)


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    assert PROGRAM.shim("two", toggle="default,clipping-of-scaled-gradients").facts["warnings"] == []


def test_custom_scaler_is_not_called():
    scaler = Mock()
    assert not are_scaled(scaler, Mock())
    assert scaler.mock_calls == []
