"""``:abort`` ends no rank that works, and spares none that only asks again and again."""

import pytest

from tests.distributed.processes import run_ranks

ENDED = [124, 124]


def outcome(case):
    return run_ranks("hang_work", [[case], [case]], {"LIGHTNING_PATCHES_HANG_TIMEOUT": "3:abort"}, timeout=90)


@pytest.mark.distributed
@pytest.mark.parametrize("case", ["packets", "thread_receives", "child_sends", "listener"])
def test_a_rank_that_works_is_not_ended(case):
    """Sent and received bytes are in no ``/proc/PID/io``, and a thread that listens on its own group is no hang."""
    ended = outcome(case)
    assert ended.statuses == [0, 0], ended
    assert all("done" in text for text in ended.outputs), ended


@pytest.mark.distributed
def test_what_cannot_be_told_ends_nothing():
    ended = outcome("datagrams")
    assert ended.statuses == [0, 0], ended
    assert "it can't be seen whether rank 1 works" in ended.outputs[0], ended


@pytest.mark.distributed
@pytest.mark.parametrize("case", ["file_lock", "heartbeat", "queue_timeout"])
def test_to_wake_up_is_no_work(case):
    ended = outcome(case)
    assert ended.statuses == ENDED, ended
    assert "All ranks are ended now" in ended.outputs[0], ended
