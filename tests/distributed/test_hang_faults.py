"""Faults of jobs: each is reported, working ranks are not ended, hanging jobs are."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lightning_patches.ranks import _processes
from lightning_patches.ranks.hang import _report
from tests.distributed import hang_faults
from tests.distributed.processes import Ended, run_ranks
from tests.support.nodes import two_containers, two_nodes
from tests.support.ports import free_port
from tests.support.run import variables

pytestmark = pytest.mark.distributed
FAULTS = [
    *("packets", "thread-receives", "child-sends", "datagrams", "listener", "writes-slowly", "computes-in-c"),
    *("poll-file-lock", "poll-asyncio", "poll-queue", "keep-alive"),  # waking up does not count as work
    *("exec", "after-rank-0", "rank-0-stopped", "subgroups", "killed", "exit-7", "sigterm", "child-computes"),
    *("handle", "functional", "store", "monitored"),  # the kinds of waits
]
"""Faults that are tested as they are in the list. ``python -m tests.distributed.hang_faults`` runs the whole list."""


def run(timeout: str, *actions: str, leave_when: str | None = None, limit: float = 300, **variables: str) -> Ended:
    environment = {"LIGHTNING_PATCHES_HANG_TIMEOUT": timeout, **variables}
    return run_ranks("hang_ranks", [a.split() for a in actions], environment, timeout=limit, leave_when=leave_when)


def verdict(ended: Ended, rank: int = 0) -> str:
    """Return the verdict of the last report. On a busy machine the first one may be from start-up."""
    lines = [line for line in ended.outputs[rank].split("\n") if line.startswith("lightning_patches: ")]
    return next((line for line in reversed(lines) if "are watched" not in line), "")


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_reported_and_ends_the_job_as_listed(fault: str) -> None:
    row = hang_faults.run(fault)
    assert hang_faults.is_as_it_has_to_be(row), row


def test_mismatch_is_reported_before_the_timeout() -> None:
    ended = run("300", "arrives after", "arrives after", WAIT="mismatch", leave_when="rank 1 in barrier 2", limit=280)
    assert "rank 0 in all_reduce 2" in verdict(ended) and "rank 1 in barrier 2" in verdict(ended), ended


def test_different_call_sites_of_a_collective_are_reported() -> None:
    """Two ranks in the same all_reduce from different lines, while a third is missing."""
    ended = run("3:abort", "arrives after last", "arrives after last", "sleeps after", WAIT="lines")
    places = re.findall(r"arrived: rank \d \(.*\), at hang_ranks.py:(\d+) in <module>", ended.outputs[0])
    assert len(set(places)) == 2 and "; ranks 0, 1 in all_reduce 2." in verdict(ended), ended


def test_rank_that_computes_with_the_gil_is_not_ended() -> None:
    ended = run("2:abort", "arrives after last", "computes_with_the_gil after", leave_when="since rank 1 works")
    assert "does not answer: the process is running, and works." in ended.outputs[0], ended
    assert ended.statuses == [None, None]


@pytest.mark.parametrize("action", ["sleeps", "locks", "polls"])
def test_all_ranks_standing_still_are_reported(action: str) -> None:
    """A polling rank wakes up, which does not count as work."""
    ended = run("3", f"{action} after", f"{action} after", leave_when="The ranks keep waiting")
    assert re.search(rf"ranks 0, 1 have not moved for \d+ s, at hang_ranks.py:\d+ in {action}\.", verdict(ended)), ended
    assert "No rank waits for another" in ended.outputs[0]


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("action", "place"),
    [
        ("does_not_end", r"at the program's end, which waits for thread 'Thread-\d+ \(sleep\)'"),
        ("hangs_in_a_late_handler", r"at the program's end, hang_ranks.py:\d+ in <lambda>"),
    ],
)
def test_rank_that_hangs_at_exit_is_reported(action: str, place: str, rank: int) -> None:
    actions = [f"{action} end" if rank == number else "arrives end" for number in range(2)]
    ended = run("3:abort", *actions)
    report = ended.outputs[rank]
    assert re.search(rf"rank {rank} .*has not moved for \d+ s, {place}", report), ended
    assert "must end first" in report or "time.sleep(100)" in report, ended
    assert ended.statuses[1 - rank] == 0 and ended.statuses[rank] == 124, ended


def test_ranks_that_wait_for_a_rank_at_exit_are_reported() -> None:
    ended = run("3:abort", "arrives after", "hangs_in_a_late_handler leaves")
    assert re.search(r"rank 1 .*at the program's end, hang_ranks.py:\d+ in <lambda>; rank 0 in", verdict(ended)), ended
    assert 124 in ended.statuses, ended


@pytest.fixture
def little_memory() -> Iterator[Path]:
    """Create a cgroup with 128 MiB of memory; skip if that is not possible."""
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    below = next((path for _, controllers, path in own if controllers == "memory"), None)
    group = Path(f"/sys/fs/cgroup/memory{below}", f"lightning-patches-{os.getpid()}")
    try:
        if below is None:
            raise OSError("no memory controller of cgroup v1")
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(128 << 20))
    except OSError as error:
        pytest.skip(f"needs the right to make a cgroup: {error}")
    yield group
    deadline = time.monotonic() + 20
    while group.exists() and time.monotonic() < deadline:
        with contextlib.suppress(OSError):  # its last process is still exiting
            group.rmdir()
        time.sleep(0.1)


@pytest.mark.parametrize("log", ["readable", "hidden"])
def test_rank_killed_by_the_oom_killer_is_reported(log: str, little_memory: Path) -> None:
    """A real OOM kill. Without the kernel's log it is inferred from the kernel's count of kills."""
    actions = [["works_on", "after"], ["runs_out_of_memory", "after"]]
    variables = {"LIGHTNING_PATCHES_HANG_TIMEOUT": "30:abort", "CGROUP": str(little_memory)}
    if log == "hidden":
        variables["HIDE_KMSG"] = "1"
    ended = run_ranks("hang_ranks", [*actions], variables)
    expected = r"by the kernel's OOM killer" if log == "readable" else r"perhaps by .* has killed \d+ process(es)? here"
    assert ended.statuses[1] == -9, ended
    report = next(output for output in ended.outputs if "rank 1 died" in output)
    assert re.search(rf"rank 1 died \(it was killed by signal 9 \(SIGKILL\), {expected}", report), ended
    assert "the job cannot finish" in report, ended


def test_killed_rank_is_reported_if_its_children_keep_its_sockets() -> None:
    """The report names the signal, long before the timeout, after which it would be unknown."""
    ended = run("100", "works_on after", "dies_with_a_helper after", leave_when="rank 1 died", limit=90)
    # If the kernel kills other processes meanwhile (another test does that), the report names an OOM kill as possible.
    assert "rank 1 died (it was killed by signal 9 (SIGKILL)" in ended.outputs[0], ended


def test_last_rank_that_works_is_not_ended() -> None:
    ended = run("2:abort", "arrives end", "packets end")
    assert ended.statuses == [0, 0], ended


def test_two_jobs_with_one_port_are_reported() -> None:
    """The second job waits for ranks that have joined the first, without a message until torch's timeout."""
    first = threading.Event()
    port = {"MASTER_PORT": str(free_port())}
    outcomes: list[Ended] = []

    def be_first() -> None:
        outcomes.append(run("60", "sleeps before", "sleeps before", leave_when="never", limit=45, **port))
        first.set()

    thread = threading.Thread(target=be_first)
    thread.start()
    time.sleep(10)
    ended = run("60", "sleeps before", "sleeps before", leave_when="of a job with MASTER_PORT", limit=30, **port)
    thread.join()
    assert f"are both rank 0 of a job with MASTER_PORT={port['MASTER_PORT']}" in ended.outputs[0], ended
    assert "are both" not in outcomes[0].outputs[0], outcomes[0]


def test_report_is_short_and_printed_once(tmp_path: Path) -> None:
    """Eight ranks with deep stacks: the terminal shows ranks and positions, the files have the complete stacks."""
    actions = ["arrives after last", *["deep_stack after last"] * 7]
    ended = run("3", *actions, leave_when="No change.", limit=200, LIGHTNING_PATCHES_HANG_DIR=str(tmp_path))
    blocks = re.findall(r"^lightning_patches: .*ranks 1 to 7 .*\n(?: .*\n)*", ended.outputs[0], re.MULTILINE)
    assert len(blocks) >= 2 and all(block.count("\n") <= _report.MOST_LINES for block in blocks), ended
    assert "in call: return time.sleep(100)" in blocks[0] and "No change. The ranks keep waiting" in blocks[-1], ended
    assert blocks[-1].count("\n") <= 3
    (text,) = tmp_path.glob("*.txt")
    assert text.read_text().count("time.sleep(100)") >= 2


def test_report_without_rank_zero_is_printed_once(tmp_path: Path) -> None:
    directory = {"LIGHTNING_PATCHES_HANG_DIR": str(tmp_path)}
    ended = run("2", "stops after", "arrives after", leave_when="No change.", limit=60, **directory)
    printed = ended.outputs[1]
    assert printed.count("can't be reached.\n") == 2 and printed.count("  stack of rank 1:") == 1, ended
    assert re.search(
        r"reached\.\n  No change\. This rank continues\.\n  Complete report, with all stacks: ", printed
    ), ended
    (text,) = tmp_path.glob("*.txt")
    assert text.read_text().count("  stack of rank 1:") >= 1
    blocks = re.findall(r"^lightning_patches: .*\n(?:  .*\n)*", printed, re.MULTILINE)
    assert max(block.count("\n") for block in blocks) <= _report.MOST_LINES, printed


def test_abort_leaves_no_child_behind() -> None:
    ended = run("3:abort", "arrives after last", "has_workers after")
    assert ended.statuses[1] == 124, ended
    pids = [int(pid) for pid in re.search(r"children (\d+) (\d+)", ended.outputs[1]).groups()]  # type: ignore[union-attr]
    deadline = time.monotonic() + 30
    while not all(_processes.is_gone(pid, None) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert all(_processes.is_gone(pid, None) for pid in pids)


def test_report_goes_to_stdout_if_stderr_is_closed() -> None:
    ended = run("3:abort", "arrives after last", "sleeps after", CLOSE_STDERR="1")
    assert ended.statuses[1] == 124 and "rank 1 has not moved" in ended.outputs[0], ended


@pytest.mark.parametrize("address", ["::1", "127.0.0.1", "localhost"])
def test_hang_is_reported_for_each_address_of_this_node(address: str) -> None:
    ended = run("3:abort", "arrives before watched", "sleeps before", MASTER_ADDR=address)
    assert ended.statuses == [124, 124] and "rank 1 has not moved" in verdict(ended), ended


def test_two_jobs_with_one_hang_port_are_both_watched() -> None:
    """One node uses no port."""
    for _ in range(2):
        ended = run("3:abort", "arrives before watched", "sleeps before", LIGHTNING_PATCHES_HANG_PORT="29999")
        assert ended.statuses == [124, 124] and "2 of 2 ranks are watched" in ended.outputs[0], ended


def test_unreachable_hub_ends_no_rank() -> None:
    """Different secrets simulate a firewall between two nodes; rank zero works for a long time."""
    with two_nodes() as nodes:
        ended = run_ranks(
            "hang_ranks",
            [["works_a_while", "after"], ["arrives", "after"]],
            {"LIGHTNING_PATCHES_HANG_TIMEOUT": "2:abort", "LIGHTNING_PATCHES_HANG_SECRET": "0123456789abcdef-of-$RANK"},
            nodes=nodes,
        )
    assert ended.statuses == [0, 0], ended
    assert "1 of 2 ranks are watched for hangs. Not rank 1" in ended.outputs[0] or "hangs" not in ended.outputs[0], (
        ended
    )


@pytest.mark.parametrize("late", ["0", "1"])
def test_store_is_not_polled_after_a_late_rank_of_this_node_arrived(late: str) -> None:
    """Before, the rank could be in another container. Afterwards the store is not used for the rest of the job."""
    ended = run("8", "tells_threads after", "tells_threads after", LATE=late)
    assert ended.statuses == [0, 0] and "2 of 2 ranks are watched" in ended.outputs[0], ended
    assert all("threads that ask the store: []" in output for output in ended.outputs), ended


@pytest.mark.parametrize("place", ["before", "after"])
def test_containers_with_the_same_host_name_are_distinguished(place: str) -> None:
    """A rank in another PID namespace has the same pid, host name and address as rank zero."""
    ended = run_ranks(
        "hang_ranks",
        [["arrives", place, "last"], ["sleeps", "imported" if place == "before" else place]],
        {"LIGHTNING_PATCHES_HANG_TIMEOUT": "12:abort"},
        nodes=two_containers(),
    )
    assert re.search(r"rank 1 has not moved for \d+ s, at hang_ranks.py:\d+ in sleeps; rank 0 in", verdict(ended)), (
        ended
    )
    assert "time.sleep(100)" in ended.outputs[0].partition("missing: rank 1")[2], ended
    assert re.search(r"rank 1 \(host (\S+), pid 1\)", ended.outputs[0]), ended
    assert 124 in ended.statuses, ended  # gloo may be faster than the order to end


def test_invisible_rank_in_another_container_is_not_ended() -> None:
    """The rank is busy before it imports torch: it can't be queried, and its process is invisible."""
    ended = run_ranks(
        "hang_ranks",
        [["arrives", "before"], ["works_a_while", "before"]],
        {"LIGHTNING_PATCHES_HANG_TIMEOUT": "2:abort"},
        nodes=two_containers(),
    )
    assert ended.statuses == [0, 0], ended
    assert "never began" not in ended.outputs[0] and "gone" not in ended.outputs[0], ended
    assert "it is unknown if rank 1 works" in ended.outputs[0], ended


@pytest.mark.parametrize("place", ["before", "after"])
def test_invisible_rank_on_another_node_is_not_ended(place: str) -> None:
    """Without a common secret, rank zero can't know the state of the other node's rank."""
    secret = {} if place == "before" else {"LIGHTNING_PATCHES_HANG_SECRET": "0123456789abcdef-of-$RANK"}
    with two_nodes(own_pids=True) as nodes:
        ended = run_ranks(
            "hang_ranks",
            [["arrives", place], ["works_a_while", place]],
            {"LIGHTNING_PATCHES_HANG_TIMEOUT": "2:abort", **secret},
            nodes=nodes,
        )
    assert ended.statuses == [0, 0] and "never began" not in ended.outputs[0], ended


def test_hang_is_reported_on_nodes_without_ipv4() -> None:
    with two_nodes(version=6) as nodes:
        ended = run_ranks(
            "hang_ranks",
            [["arrives", "after", "last", "watched"], ["sleeps", "after"]],
            {"LIGHTNING_PATCHES_HANG_TIMEOUT": "4:abort"},
            nodes=nodes,
        )
    assert re.search(r"rank 1 has not moved for \d+ s, at hang_ranks.py:\d+ in sleeps; rank 0 in", verdict(ended)), (
        ended
    )
    assert 124 in ended.statuses and "2 of 2 ranks are watched" in ended.outputs[0], ended


def test_stack_signal_interrupts_no_system_call() -> None:
    """A rank that sleeps in C with the GIL writes its stack and continues to sleep."""
    ended = run("2", "arrives after last", "sleeps_with_the_gil after")
    assert ended.statuses == [0, 0], ended
    assert "It is in code that blocks all other Python threads:" in ended.outputs[0], ended
    assert "slept for 25 s" in ended.outputs[1], ended


def test_hang_show_lists_a_running_job_and_the_report_has_files(tmp_path: Path) -> None:
    """``hang show`` works before a report, and the report has files."""
    shown: list[dict[str, Any]] = []

    def look() -> None:
        command = [sys.executable, "-m", "lightning_patches", "hang", "show", "--json"]
        environment = variables()
        deadline = time.monotonic() + 60
        while not shown and time.monotonic() < deadline:
            time.sleep(1)
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
            jobs = json.loads(done.stdout)["jobs"] if done.returncode == 0 else []
            shown.extend(
                job
                for job in jobs
                if job["verdict"].endswith("rank 0 in barrier 2") and "time.sleep(100)" in job["ranks"][1]["detail"]
            )

    viewer = threading.Thread(target=look)
    viewer.start()
    ended = run("30:abort", "arrives after", "sleeps after", LIGHTNING_PATCHES_HANG_DIR=str(tmp_path / "hangs"))
    viewer.join()
    assert ended.statuses[1] == 124 and shown and "hang_ranks.py" in shown[0]["text"], (ended, shown)
    head = shown[0]["text"].split("\n")[0]
    assert re.match(r"Job \d+, `python\S* \S*hang_ranks.py arrives after` in /\S+:$", head), head
    (text,) = (tmp_path / "hangs").glob("*.txt")
    (data,) = (tmp_path / "hangs").glob("*.jsonl")
    assert "rank 1 has not moved" in text.read_text() and str(text) in ended.outputs[0]
    (report,) = [json.loads(line) for line in data.read_text().splitlines()]
    assert [rank["kind"] for rank in report["ranks"]] == ["waits", "stands still"]
    assert all("hang_ranks.py" in rank["detail"] for rank in report["ranks"])
    recorded = [[one["name"] for one in rank["recorder"]] for rank in report["ranks"]]
    assert recorded == [["all_reduce", "barrier"], ["all_reduce"]]


@pytest.mark.parametrize("action", ["waits_for_a_worker", "waits_for_a_stopped_child"])
def test_child_process_that_a_rank_waits_for_is_in_the_report(action: str, tmp_path: Path) -> None:
    """The report has a DataLoader worker's stack and a program's state, and ``diagnose`` reads the files."""
    ended = run("4:abort", "arrives after last", f"{action} after", LIGHTNING_PATCHES_HANG_DIR=str(tmp_path))
    assert 124 in ended.statuses, ended
    (data,) = tmp_path.glob("*.jsonl")
    (text,) = tmp_path.glob("*.txt")
    (child,) = json.loads(data.read_text().splitlines()[0])["ranks"][1]["children"]
    if action == "waits_for_a_worker":
        assert re.match(r"child process \d+ \(\S+\): the process is sleeping\.\n", child), child
        assert "hang_ranks.py" in child and "in __getitem__" in child, child
        assert "in __getitem__" in ended.outputs[0] and "in __getitem__" in text.read_text(), ended
    else:
        assert re.fullmatch(r"child process \d+ \(sleep\): the process is stopped by a signal .*", child), child
    for name in (tmp_path, data, text):
        command = [sys.executable, "-m", "lightning_patches", "diagnose", str(name), "--json"]
        done = subprocess.run(command, env=variables(), capture_output=True, text=True)
        assert done.returncode == 0, done
        (hang,) = json.loads(done.stdout)["hangs"]
        assert hang["verdict"].startswith("rank 1 has not moved for") and "rank 0 in barrier 2" in hang["verdict"], hang
