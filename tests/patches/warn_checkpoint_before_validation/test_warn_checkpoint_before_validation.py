"""A checkpoint is ranked by the previous validation. The patch only warns."""

import pytest

from tests.support.variants import Variant, run


def seen(version, case, shim=True, toggle=None):
    distribution = "pytorch-lightning" if version < "2.1" else "lightning"
    result = run("checkpoint_after_own_validation", Variant(distribution, version, shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_checkpoint_with_an_old_metric_causes_one_warning(version):
    warned, stock = seen(version, "within"), seen(version, "within", shim=False)
    (warning,) = warned["warnings"]
    assert "just before the validation of that step, and ranks it by the previous value of 'metric'" in warning
    assert warned["files"] == stock["files"]


@pytest.mark.parametrize("case", ["subclass", "apart", "no-monitor", "epochs"])
def test_warning_is_absent_for_other_checkpoints(case):
    assert seen("2.6.6", case)["warnings"] == []


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    assert seen("2.6.6", "within", toggle="default,checkpoint-after-own-validation")["warnings"] == []
