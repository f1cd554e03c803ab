"""The patch only warns that a due validation is skipped."""

import pytest

from tests.support.variants import Variant, run

NAME = "warn-validation-due-on-resume"
SAYS = "leaves that validation out"


def result(case, toggle, shim=True, version="2.6.6"):
    found = run("resume_on_last_batch", Variant("pytorch-lightning", version, shim), case, toggle=toggle)
    assert found.ok, found
    return found


def warns(found):
    return SAYS in " ".join(found.output.split())


@pytest.mark.parametrize("version", ["2.5.0", "2.6.6"])
def test_warns_and_changes_nothing(version):
    stock, shim = (result("validated every two batches: within", NAME, shim, version) for shim in (False, True))
    assert warns(shim) and not warns(stock)
    assert shim.observations == stock.observations


def test_warning_is_absent_if_no_validation_is_skipped():
    assert not warns(result("plain: within", NAME))


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    assert not warns(result("validated every two batches: within", f"{NAME},validation-due-on-resume"))
