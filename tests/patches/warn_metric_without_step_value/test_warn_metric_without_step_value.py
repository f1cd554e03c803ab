"""Issue 20160: an updated metric is logged with on_step, but has no step value. The patch only warns."""

import pytest

from tests.support.variants import Variant, run


def seen(version, case, shim=True):
    distribution = "pytorch-lightning" if version < "2.1" else "lightning"
    result = run("warn_metric_without_step_value", Variant(distribution, version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
@pytest.mark.parametrize(("case", "kind"), [("update", "MeanMetric"), ("running", "RunningMean")])
def test_missing_step_value_causes_one_warning(version, case, kind):
    patched, stock = seen(version, case), seen(version, case, shim=False)
    assert patched["names"] == stock["names"] and "mean_step" not in stock["names"]
    (warning,) = patched["warnings"]
    assert f"self.log('mean', ..., on_step=True) logs no value for the step: {kind} has none." in warning


@pytest.mark.parametrize("case", ["forward", "epoch", "tensor"])
def test_warning_is_absent_if_all_values_are_logged(case):
    assert seen("2.6.6", case) == seen("2.6.6", case, shim=False)
