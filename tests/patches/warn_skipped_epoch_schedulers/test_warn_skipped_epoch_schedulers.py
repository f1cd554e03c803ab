"""Issue 21296: schedulers are not stepped if on_train_batch_start returns -1. The patch only warns."""

import pytest

from tests.support.variants import Variant, run


def seen(version, case, toggle=None, shim=True):
    distribution = "pytorch-lightning" if version < "2.1" else "lightning"
    result = run("skipped_epoch_schedulers", Variant(distribution, version, shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.5.6"])
@pytest.mark.parametrize("case", ["epoch", "plateau"])
def test_skipped_step_is_warned_of_once(version, case):
    warned = seen(version, case)
    (warning,) = warned.pop("warnings")
    assert warning.startswith("on_train_batch_start ended the epoch by returning -1")
    assert warned == {name: value for name, value in seen(version, case, shim=False).items() if name != "warnings"}


@pytest.mark.parametrize("case", ["by hand", "step", "whole", "error"])
def test_no_warning_if_no_step_is_missing(case):
    patched, stock = seen("2.5.6", case), seen("2.5.6", case, shim=False)
    assert patched["warnings"] == [] and patched == stock


def test_no_warning_if_the_opt_in_patch_steps():
    observed = seen("2.5.6", "epoch", toggle="default,skipped-epoch-schedulers")
    assert observed["warnings"] == [] and len(set(observed["rates"])) == 4
