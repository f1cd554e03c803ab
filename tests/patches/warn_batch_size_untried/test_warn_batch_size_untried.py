"""PR 21187: the batch size finder returns a batch size that it never tried. The patch only warns."""

import pytest

from tests.support.variants import Variant, run


def seen(version, case, toggle=None, shim=True):
    distribution = "pytorch-lightning" if version < "2.1" else "lightning"
    result = run("batch_size_finder_tried_size", Variant(distribution, version, shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.5.6"])
@pytest.mark.parametrize(("case", "size"), [("power", 16), ("one", 4)])
def test_untried_size_is_warned_of_once(version, case, size):
    warned = seen(version, case)
    (warning,) = warned.pop("warnings")
    assert f"It returns {size}, but the largest batch size that it has tried is {size // 2}." in warning
    assert warned == {name: value for name, value in seen(version, case, shim=False).items() if name != "warnings"}


@pytest.mark.parametrize("case", ["oom", "first", "small", "binsearch"])
def test_no_warning_if_the_size_was_tried(case):
    patched, stock = seen("2.5.6", case), seen("2.5.6", case, shim=False)
    assert patched["warnings"] == [] and patched == stock


def test_no_warning_if_the_opt_in_patch_returns_a_tried_size():
    observed = seen("2.5.6", "power", toggle="default,batch-size-finder-tried-size")
    assert observed["warnings"] == [] and observed["found"] in observed["tried"]
