"""Issue 20340: what is unfrozen after the start is not synchronized by DDP. The patch only says so."""

import pytest

from tests.support.arms import Arm, run


def observed(version, case, shim):
    arm = Arm("pytorch-lightning", version, shim)
    result = run("ddp_with_unfrozen", arm, case, toggle="warn-unfrozen-after-ddp" if shim else None)
    assert result.ok, result
    return result.observations, [rank.pop("warnings") for rank in result.observations]


def are_alike(ranks):
    return ranks[0]["backbone"] == ranks[1]["backbone"]


@pytest.mark.parametrize(("version", "case"), [("2.0.0", "callback"), ("2.6.6", "callback"), ("2.6.6", "hand")])
def test_warns_once_where_the_ranks_part(version, case):
    stock, _ = observed(version, case, shim=False)
    assert not are_alike(stock)
    shim, (first, second) = observed(version, case, shim=True)
    assert shim == stock
    (warning,) = first
    assert "with lr=0 until then: 2 of them (" in warning
    assert (
        "ddp-with-unfrozen, or leave" in warning
        and "backbone.0.weight is the first) were frozen when DDP wrapped the module" in warning
    )
    assert second == []


@pytest.mark.parametrize("case", ["untrained", "hand-lr"])
def test_is_silent_where_the_ranks_stay_alike(case):
    """``hand-lr`` is what the warning advises."""
    ranks, warnings = observed("2.6.6", case, shim=True)
    assert are_alike(ranks)
    assert warnings == [[], []]


def test_is_silent_in_a_job_of_one_rank():
    _, warnings = observed("2.6.6", "one", shim=True)
    assert warnings == [[]]
