"""From 2.6.0 on, the batch size finder returns max_val, or a size above it, without a trial. The patch only warns."""

import pytest

from tests.patches.batch_size_finder_limit.test_batch_size_finder_limit import seen


@pytest.mark.parametrize("version", ["2.6.0", "2.6.6"])
@pytest.mark.parametrize("case", ["power", "binsearch"])
def test_untried_limit_causes_one_warning(version, case):
    warned, stock = seen(case, toggle=None, version=version), seen(case, shim=False, version=version)
    (warning,) = warned["warnings"]
    assert f"reached max_val=20 and returns {stock['found']}, but the largest that it has tried is 12." in warning
    assert warned["tried"] == stock["tried"] and warned["found"] == stock["found"]


@pytest.mark.parametrize("case", ["oom", "small", "trials"])
def test_warning_is_absent_if_the_size_was_tried(case):
    assert seen(case, toggle=None)["warnings"] == []


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    assert seen("power", toggle="default,batch-size-finder-limit")["warnings"] == []
