import pytest

from tests.differential.trial import difference
from tests.support.programs import Program, only, sees

PROGRAM = Program("hook-calls", "2.6.6", toggle="hook-calls,compiled-log")
SAME = only("events", "weights", "metrics")


def _has_events(number, *starts):
    """Return a check that more than this number of events begin with each of the texts."""
    return sees(lambda seen: all(sum(event.startswith(start) for event in seen["events"]) > number for start in starts))


@pytest.mark.parametrize("case", ["profiler", "raises", "hooks"])
@pytest.mark.parametrize("version", ["2.1.0", "2.6.6"])
def test_each_hook_sees_the_state_of_stock(version, case):
    (stock,), (shim,) = PROGRAM.counts(case, version)
    assert stock > 40 and shim < 10


test_debug_message_has_the_line_of_stock = PROGRAM.unchanged(
    "debug", on=("2.1.0", "2.6.6"), observed=SAME, check=_has_events(0, "call.py _call_callback_hooks ")
)
test_custom_setattr_sees_each_attribute = PROGRAM.unchanged(
    "own", "wrapped", "descriptor", observed=SAME, check=_has_events(40, "set ")
)
test_custom_profiler_is_called = PROGRAM.unchanged(
    "idle", on=("2.0.0", "2.6.6"), observed=SAME, check=_has_events(10, "start [", "stop [", "profile [")
)
test_hooks_on_two_ranks_see_the_state_of_stock = pytest.mark.distributed(PROGRAM.unchanged("ddp", observed=SAME))


def test_hook_that_inspects_its_caller_sees_the_names_of_stock():
    assert not difference("callers", "2.6.6", "hook-calls")


def _is_named_slowly(ranks):
    return [{**rank, "counted": rank["counted"] > 10} for rank in ranks]


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["counted"] > 40),
    "plain",
    observed=_is_named_slowly,
    recommended_observed=lambda ranks: [{**rank, "counted": False} for rank in ranks],
)
