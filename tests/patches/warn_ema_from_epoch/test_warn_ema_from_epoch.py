"""EMAWeightAveraging ignores update_starting_at_epoch. The patch only warns."""

import pytest

from tests.support.variants import Variant, run


def seen(case, shim=True, toggle=None, version="2.6.6"):
    result = run("ema_from_epoch", Variant("lightning", version, shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.6.0", "2.6.6"])
def test_early_average_causes_one_warning(version):
    warned = seen("epoch", version=version)
    (warning,) = warned.pop("warnings")
    assert "EMAWeightAveraging(update_starting_at_epoch=2) averages from the first step on" in warning
    assert warned["weight"] == seen("epoch", shim=False, version=version)["weight"]


@pytest.mark.parametrize("case", ["subclass", "step", "both", "plain"])
def test_warning_is_absent_for_other_averages(case):
    assert seen(case)["warnings"] == []


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    assert seen("never", toggle="all")["warnings"] == []
    assert seen("never", toggle="all")["weight"] == seen("without", shim=False)["weight"]
