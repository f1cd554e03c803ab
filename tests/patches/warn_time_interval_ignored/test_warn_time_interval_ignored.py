"""PR 21699: with manual optimization, train_time_interval saves nothing. The patch only says so."""

import pytest

from tests.support.variants import Variant, run


def seen(case, version="2.6.6", toggle=None, shim=True):
    result = run("manual_optimization_time_interval", Variant("pytorch-lightning", version, shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.6.0", "2.6.6"])
def test_missing_checkpoint_causes_one_warning(version):
    warned = seen("", version)
    (warning,) = warned.pop("warnings")
    assert warning.startswith("No checkpoint is saved at train_time_interval")
    stock = seen("", version, shim=False)
    assert stock.pop("warnings") == [] and warned == stock


@pytest.mark.parametrize("case", ["automatic", "steps", "hour"])
def test_no_warning_in_other_cases(case):
    """With automatic optimization, without an interval, and before the interval has passed."""
    assert seen(case)["warnings"] == []


def test_no_warning_if_the_opt_in_patch_saves():
    mended = seen("", toggle="default,manual-optimization-time-interval")
    assert mended["warnings"] == [] and mended["steps"] == [1, 2, 3, 4]
