"""Issue 21447: an ordered sampler is shuffled where there are several ranks. The patch only says so."""

import pytest

from tests.support.arms import Arm, run

pytestmark = pytest.mark.distributed


def seen(version, case, shim=True):
    result = run("warn_sampler_shuffled", Arm("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_says_that_the_order_of_an_own_sampler_is_lost(version):
    assert [rank["in_order"] for rank in seen(version, "", shim=False)] == [False, False]
    first, second = seen(version, "")
    (warning,) = first["warnings"]
    assert warning.startswith("The samples that Curriculum chooses are shuffled")
    assert not first["in_order"] and not second["in_order"] and not second["warnings"]


@pytest.mark.parametrize("case", ["torch", "divides"])
def test_is_silent(case):
    """Where the sampler is one of torch's, or Lightning leaves it alone."""
    assert [rank["warnings"] for rank in seen("2.6.6", case)] == [[], []]
