import pytest

from tests.differential.trial import difference
from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run

NEWEST = ("lightning", "2.6.6")


def observed(release, case, shim):
    toggle = "hook-calls,compiled-log" if shim else None
    result = run("hook_calls", Variant(*release, shim=shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations


def _observes_the_same(release, case):
    stock, shim = observed(release, case, False), observed(release, case, True)
    assert [{**rank, "named": 0} for rank in shim] == [{**rank, "named": 0} for rank in stock]
    return stock, shim


@pytest.mark.parametrize("case", ["profiler", "raises", "hooks"])
@pytest.mark.parametrize("release", [("pytorch-lightning", "2.1.0"), NEWEST])
def test_each_hook_sees_the_state_of_stock(release, case):
    stock, shim = _observes_the_same(release, case)
    assert stock[0]["named"] > 40 and shim[0]["named"] < 10


@pytest.mark.parametrize("release", [("pytorch-lightning", "2.1.0"), NEWEST])
def test_debug_message_has_the_line_of_stock(release):
    _, shim = _observes_the_same(release, "debug")
    assert any(event.startswith("call.py _call_callback_hooks ") for event in shim[0]["events"])


@pytest.mark.parametrize("case", ["own", "wrapped", "descriptor"])
def test_custom_setattr_sees_each_attribute(case):
    stock, shim = _observes_the_same(NEWEST, case)
    assert sum(event.startswith("set ") for event in shim[0]["events"]) > 40


@pytest.mark.parametrize("release", [("pytorch-lightning", "2.0.0"), NEWEST])
def test_custom_profiler_is_called(release):
    _, shim = _observes_the_same(release, "idle")
    for call in ("start", "stop", "profile"):
        assert sum(event.startswith(f"{call} [") for event in shim[0]["events"]) > 10


@pytest.mark.distributed
def test_hooks_on_two_ranks_see_the_state_of_stock():
    _observes_the_same(NEWEST, "ddp")


def test_hook_that_inspects_its_caller_sees_the_names_of_stock():
    assert not difference("callers", "2.6.6", "hook-calls")


def _is_named_slowly(ranks):
    return [{**rank, "named": rank["named"] > 10} for rank in ranks]


PROOFS = proofs(
    "hook-calls",
    sees(lambda seen: seen["named"] > 40),
    "plain",
    observed=_is_named_slowly,
    recommended_observed=lambda ranks: [{**rank, "named": False} for rank in ranks],
)
