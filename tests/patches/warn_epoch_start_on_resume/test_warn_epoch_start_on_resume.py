"""The patch only warns that hooks at the start of the resumed epoch are skipped."""

import pytest

from tests.support.variants import Variant, run

NAME = "warn-epoch-start-on-resume"
SAYS = "on_train_epoch_start is not called"


def result(case, toggle, shim=True, version="2.6.6"):
    found = run("resume_on_last_batch", Variant("pytorch-lightning", version, shim), case, toggle=toggle)
    assert found.ok, found
    return found


def warns(found):
    return SAYS in " ".join(found.output.split())


@pytest.mark.parametrize("version", ["2.5.0", "2.6.6"])
def test_warns_and_changes_nothing(version):
    stock, shim = (result("curriculum: within", NAME, shim, version) for shim in (False, True))
    assert warns(shim) and not warns(stock)
    assert shim.observations == stock.observations


def test_warning_is_absent_if_no_hook_is_skipped():
    assert not warns(result("curriculum: epoch end", NAME))
