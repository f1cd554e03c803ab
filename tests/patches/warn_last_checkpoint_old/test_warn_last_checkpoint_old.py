"""last.ckpt is not the newest checkpoint of a run. The patch only warns."""

import pytest

from tests.support.variants import Variant, run


def seen(version, case, shim=True, toggle=None):
    distribution = "pytorch-lightning" if version < "2.1" else "lightning"
    result = run("last_checkpoint_newest", Variant(distribution, version, shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.6.0", "2.6.6"])
@pytest.mark.parametrize("case", ["worse", "validation"])
def test_last_checkpoint_of_the_best_epoch_causes_a_warning(version, case):
    patched, stock = seen(version, case), seen(version, case, shim=False)
    (warning,) = patched["warnings"]
    assert "last.ckpt is of step 2, and the run ended at step 10" in warning
    assert patched["files"] == stock["files"]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_last_checkpoint_of_an_earlier_run_causes_a_warning(version):
    patched, stock = seen(version, "resumed"), seen(version, "resumed", shim=False)
    assert any("The last checkpoint of this run is last-v1.ckpt." in warning for warning in patched["warnings"])
    assert patched["files"] == stock["files"] and "last-v1.ckpt" in stock["files"]


@pytest.mark.parametrize(("version", "case"), [("2.5.6", "worse"), ("2.6.6", "better"), ("2.6.6", "link")])
def test_warning_is_absent_if_the_last_checkpoint_is_the_newest(version, case):
    assert seen(version, case)["warnings"] == []


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    assert seen("2.6.6", "worse", toggle="default,last-checkpoint-newest")["warnings"] == []
