import pytest

from tests.support.programs import Program, only

PROGRAM = Program("warn-last-checkpoint-old", "2.6.6", scenario="last_checkpoint_newest")

test_last_checkpoint_of_the_best_epoch_causes_a_warning = PROGRAM.warns(
    "worse", "validation", says="last.ckpt is of step 2, and the run ended at step 10", on=("2.6.0", "2.6.6")
)
test_warning_is_absent_if_the_last_checkpoint_is_the_newest = PROGRAM.unchanged("better", "link")
test_warning_is_absent_on_an_unaffected_release = PROGRAM.unchanged("worse", on=("2.5.6",))
test_warning_is_absent_if_the_opt_in_patch_is_selected = PROGRAM.unchanged(
    "worse", observed=only("warnings"), toggle="default,last-checkpoint-newest"
)


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_last_checkpoint_of_an_earlier_run_causes_a_warning(version):
    stock, shim = (result.facts for result in PROGRAM.both("resumed", version))
    assert any("The last checkpoint of this run is last-v1.ckpt." in warning for warning in shim["warnings"])
    assert shim["files"] == stock["files"] and "last-v1.ckpt" in stock["files"]
