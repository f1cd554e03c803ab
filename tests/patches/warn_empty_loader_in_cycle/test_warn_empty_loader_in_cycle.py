"""Issue 21893: with an empty loader in it, a CombinedLoader gives nothing. The patch only says so."""

import pytest

from tests.support.variants import Variant, run


def seen(version, case, shim):
    result = run("warn_empty_loader_in_cycle", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    found = result.observations[0]
    return found["steps"], found["warnings"]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
@pytest.mark.parametrize(("case", "steps"), [("", 0), ("once", 1)])
def test_warning_names_the_empty_loader(version, case, steps):
    assert seen(version, case, False) == (steps, [])
    taken, (warning,) = seen(version, case, True)
    assert taken == steps
    assert "gives no batch when it begins anew: number 1 (DataLoader). Leave it out" in warning


def test_no_warning_if_all_loaders_have_batches():
    assert seen("2.6.6", "none", True) == (6, [])
