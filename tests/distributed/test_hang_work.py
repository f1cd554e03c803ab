"""``:abort`` ends no working rank, but ends polling ranks."""

import pytest

from tests.distributed.processes import run_ranks

ENDED = [124, 124]


def outcome(action, other="arrives"):
    actions = [[other, "after", "last"], [action, "after", "last"]]
    return run_ranks("hang_ranks", actions, {"LIGHTNING_PATCHES_HANG_TIMEOUT": "3:abort"}, timeout=120)


@pytest.mark.distributed
@pytest.mark.parametrize(
    ("case", "other"),
    [("packets", "arrives"), ("thread_receives", "arrives"), ("child_sends", "arrives"), ("listens", "listens")],
)
def test_working_rank_is_not_ended(case, other):
    """``/proc/PID/io`` has no network traffic, and a thread that listens on its own group is not a hang."""
    ended = outcome(case, other)
    assert ended.statuses == [0, 0], ended
    assert all("done" in text for text in ended.outputs), ended


@pytest.mark.distributed
def test_unknown_activity_ends_no_rank():
    ended = outcome("datagrams")
    assert ended.statuses == [0, 0], ended
    assert "it is unknown if rank 1 works" in ended.outputs[0], ended


@pytest.mark.distributed
@pytest.mark.parametrize("case", ["file_lock", "heartbeat", "queue_timeout", "keep_alive"])
def test_process_that_only_wakes_up_does_not_count_as_working(case):
    """Keep-alive messages of another tool do not count, either."""
    ended = outcome(case)
    assert ended.statuses == ENDED, ended
    assert "All ranks are ended now" in ended.outputs[0], ended
