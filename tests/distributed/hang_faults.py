"""Faults of jobs with several ranks: the right report, and the report of the hang watch.

    python -m tests.distributed.hang_faults                 # all faults: about 20 minutes on two cores
    python -m tests.distributed.hang_faults sleep killed    # these faults

Prints a line of JSON for each fault. The exit status is 1 if a report is not right.
``upstream/HANG_FAULTS.md`` describes the reports by kind of fault.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from tests.distributed.processes import Ended, run_ranks

TIMEOUT = 3
_LIMIT = 75.0
ENDED, SPARED, ITSELF = "all ranks are ended", "nobody is ended", "the ranks end by themselves"


@dataclass(frozen=True)
class Fault:
    """A fault of a job.

    Args:
        title: description for readers.
        actions: action of each rank, see ``programs/hang_ranks.py``; ``None`` for a rank that never starts.
        kinds: states of the ranks in a correct report, by rank, see ``lightning_patches.ranks.hang._report``; empty if
            only another rank than zero can report.
        names: pattern that a correct report matches for the faulty rank, the first in ``kinds``.
        says: pattern of the verdict of a correct report.
        outcome: expected end of the job.
        variables: environment variables.
    """

    title: str
    actions: tuple[Optional[str], ...]
    kinds: dict[int, str] = field(default_factory=dict)
    names: str = ""
    outcome: str = ENDED
    variables: dict[str, str] = field(default_factory=dict)
    says: str = ""


def _stuck(title: str, action: str, names: str = "", kind: str = "stands still") -> Fault:
    """Return a fault in which rank one never ends an action while rank zero waits for it."""
    return Fault(title, ("arrives after last", f"{action} after last"), {1: kind}, names or action)


def _honest(title: str, action: str) -> Fault:
    return Fault(title, ("arrives after last", f"{action} after"), outcome=SPARED)


def _dies(title: str, action: str, names: str, kind: str = "died", outcome: str = ENDED) -> Fault:
    return Fault(title, ("arrives after", f"{action} after"), {1: kind}, names, outcome)


def _other_call(title: str, action: str, names: str) -> Fault:
    return Fault(
        title, ("arrives after last", f"{action} after last"), {1: "waits( elsewhere)?", 0: "waits( elsewhere)?"}, names
    )


def _waiting(title: str, wait: str, call: str) -> Fault:
    actions = ("arrives after last watched", "sleeps after")
    says = rf"rank 1 has not moved for \d+ s, at hang_ranks.py:\d+ in \w+; rank 0 in {call}"
    return Fault(title, actions, {1: "stands still", 0: "waits"}, "sleeps", ENDED, {"WAIT": wait}, says)


FAULTS: dict[str, Fault] = {
    # one rank does not move
    "sleep": _stuck("sleeps for ever", "sleeps"),
    "lock": _stuck("takes a lock twice", "locks"),
    "two-locks": _stuck("two threads, two locks, in opposite order", "two_locks"),
    "fifo": _stuck("opens a pipe that nobody writes to", "fifo"),
    "prompt": _stuck("asks for a password, and nobody is there", "prompt"),
    "full-pipe": _stuck("writes to a program that reads no more", "full_pipe"),
    "deep-stack": _stuck("sleeps 900 calls deep", "deep_stack", "call"),
    "many-threads": _stuck("sleeps, beside 300 threads", "many_threads"),
    "own-handlers": _stuck("C code with the GIL, every signal has a handler", "own_handlers", kind="does not answer"),
    "default-handlers": _stuck("C code with the GIL, all signals kill", "default_handlers", "", "does not answer"),
    "gil": _stuck("C code that holds the GIL", "holds_the_gil", kind="does not answer"),
    "sigstop": _stuck("is stopped (SIGSTOP)", "stops", "stopped by a signal", "does not answer"),
    "hostile-name": _stuck("sleeps in a file whose name steers terminals", "hostile_name", "died.py"),
    "worker-deadlock": _stuck("its DataLoader's worker waits for a lock", "worker_deadlock"),
    "worker-sleeps": _stuck("its DataLoader's worker sleeps", "waits_for_a_worker", "__getitem__"),
    "worker-stopped": _stuck("its DataLoader's worker is stopped", "worker_stopped", "stopped by a signal"),
    "child-stopped": _stuck("the program that it has started is stopped", "waits_for_a_stopped_child", "stopped by"),
    # one rank polls
    "poll": _stuck("looks again and again for a file", "polls"),
    "poll-file-lock": _stuck("asks every 50 ms for the lock of a file", "file_lock"),
    "poll-asyncio": _stuck("asyncio: a heartbeat, and a future that never comes", "heartbeat", "heartbeat|beat"),
    "poll-queue": _stuck("a queue with a timeout, again and again", "queue_timeout"),
    "poll-connect": _stuck("connects again and again to a server that is gone", "retries"),
    "keep-alive": _stuck("a connection that carries 10 bytes a second", "keep_alive", "receive"),
    # ranks that end
    "killed": _dies("is killed (SIGKILL), while rank 0 waits for it", "dies", "SIGKILL", outcome=ITSELF),
    "killed-helper": _dies("is killed, and its helper keeps its sockets", "dies_with_a_helper", "SIGKILL"),
    "segmentation-fault": _dies("a segmentation fault", "segmentation_fault", "SIGSEGV", outcome=ITSELF),
    "sigterm": _dies("is asked to end (SIGTERM)", "is_asked_to_end", "SIGTERM", outcome=ITSELF),
    "exec": _dies("replaces itself by another program", "replaces_itself", "replaced itself by sleep",
     "does not answer"),
    "exit-0": _dies("`os._exit(0)`", "exits_at_once", "exited with status 0", outcome=ITSELF),
    "exit-7": _dies("`os._exit(7)`", "exits_at_once_with_7", "exited with status 7", outcome=ITSELF),
    "raises": Fault("raises before there is a group", ("arrives before watched", "raises before"), {1: "failed"},
     "no such file: train.csv"),
    "worker-killed": Fault("its DataLoader's worker is killed", ("arrives after", "worker_killed after"), {1: "failed"},
     "killed by signal", ITSELF),
    "killed-works": Fault("is killed while rank 0 computes", ("works_on after", "dies after"), {1: "died"}, "SIGKILL"),
    "never-began": Fault("rank 1 is never started", ("arrives before", None), {1: "never began"}),
    # calls that do not match
    "broadcast": _other_call("broadcasts, the others are in a barrier", "broadcasts", "broadcast"),
    "shape": _other_call("reduces a tensor, the others are in a barrier", "reduces_another_shape", "all_?reduce"),
    "barrier-alone": Fault("one barrier more than the others", ("arrives after last", "waits_alone after last"),
     {0: "has left"}, "", ITSELF),
    "mismatch": Fault("rank 0 reduces, rank 1 is in a barrier", ("arrives after", "arrives after"),
     {0: "waits( elsewhere)?", 1: "waits( elsewhere)?"}, "reduce", variables={"WAIT": "mismatch"}),
    "group-left": Fault("leaves the group and sleeps", ("arrives after last", "skips after last"), names="skips"),
    # ways to wait
    "handle": _waiting("rank 0 waits for the handle of an asynchronous call", "handle", "all_reduce 2"),
    "functional": _waiting("rank 0 waits in a functional collective", "functional", "all_reduce"),
    "store": _waiting("rank 0 waits for a key of the store", "store", "get 1"),
    "monitored": _waiting("rank 0 waits in a monitored barrier", "monitored", "monitored_barrier"),
    "subgroups": Fault("four ranks, groups that were used unequally", (*["arrives after last"] * 3, "sleeps after"),
     {3: "stands still", 0: "waits", 1: "waits", 2: "waits"}, "sleeps", variables={"WAIT": "subgroup"}),
    "before-group": Fault("before there is a group", ("arrives before watched", "sleeps before"),
     {1: "stands still", 0: "waits"}, "sleeps"),
    # no rank waits
    "rank-0-stopped": Fault("rank 0, which hears all reports, is stopped", ("stops after", "arrives after"),
     names="rank 0 .*stopped by a signal"),
    "thread-at-exit": Fault("a thread keeps rank 1 from ending", ("arrives end", "does_not_end end"),
     names="which waits for thread"),
    "handler-at-exit": Fault("a handler of rank 1 at exit does not return",
     ("arrives end", "hangs_in_a_late_handler end"), names="in <lambda>"),
    "process-at-exit": Fault("a process of rank 1 does not end", ("arrives end", "joins_a_process end"),
     names="multiprocessing"),
    "after-rank-0": Fault("rank 1 hangs in a teardown, rank 0 has left", ("arrives end", "sleeps end"), names="sleeps"),
    # real work
    "regular-expression": _honest("a regular expression that never ends, and computes", "regular_expression"),
    "computes": _honest("computes in Python", "works_a_while"),
    "computes-in-c": _honest("computes in one call into C", "computes_in_c"),
    "computes-with-gil": _honest("computes with the GIL", "computes_a_while_with_the_gil"),
    "child-computes": _honest("a process that it has started computes", "waits_for_a_child"),
    "tokenizes": _honest("a pool of processes computes", "tokenizes"),
    "writes-slowly": _honest("one write that takes long", "writes_slowly"),
    "saves": _honest("a checkpoint onto a slow disk", "saves"),
    "packets": _honest("receives a packet a second", "packets"),
    "thread-receives": _honest("a thread receives 1 MB a second", "thread_receives"),
    "child-sends": _honest("a process sends 1 MB a second", "child_sends"),
    "datagrams": _honest("receives datagrams", "datagrams"),
    "listener": Fault("a thread of each rank listens, the others compute", ("listens after", "listens after"),
     outcome=SPARED),
}  # fmt: skip
# An endless computation can't be distinguished from a long one, so the watch does not end it. Users must know that.
FOR_EVER = ("regular-expression",)


def run(name: str) -> dict[str, Any]:
    """Run a fault and return the result."""
    fault = FAULTS[name]
    with tempfile.TemporaryDirectory(prefix="hangs-") as directory:
        actions = [None if action is None else action.split() for action in fault.actions]
        variables = {"LIGHTNING_PATCHES_HANG_TIMEOUT": f"{TIMEOUT}:abort", "LIGHTNING_PATCHES_HANG_DIR": directory}
        limit = 40.0 if name in FOR_EVER else _LIMIT
        ended = run_ranks("hang_ranks", actions, {**variables, "TELL_TIME": "1", **fault.variables}, timeout=limit)
        lines = [line for path in sorted(Path(directory).glob("*.jsonl")) for line in path.read_text().splitlines()]
    reports = sorted((json.loads(line) for line in lines), key=lambda report: report["time"])
    return seen(name, ended, reports)


def seen(name: str, ended: Ended, reports: list[dict[str, Any]]) -> dict[str, Any]:
    fault = FAULTS[name]
    right = next((report for report in reversed(reports) if is_right(fault, report)), None)
    first = next((report for report in reports if is_right(fault, report)), None)
    shown = right or (reports[-1] if reports else None)
    begun = [float(at) for output in ended.outputs for at in re.findall(r"^@(\d+\.\d+)$", output, re.MULTILINE)]
    return {
        "name": name,
        "says": shown["verdict"] if shown else "",
        "named": first is not None if fault.outcome != SPARED else None,
        "after": round(first["time"] - max(begun), 1) if first and begun else None,
        "statuses": ended.statuses,
        "seconds": round(ended.seconds, 1),
        "outcome": outcome(name, ended, reports),
        "lines": max((len(text.split("\n")) for text in _blocks(ended)), default=0),
    }


def is_right(fault: Fault, report: dict[str, Any]) -> bool:
    """True if a report blames the right rank for the right reason."""
    ranks = {rank["rank"]: rank for rank in report["ranks"]}
    if not re.search(fault.says, report["verdict"]):
        return False
    if not fault.kinds:  # a report without rank zero has no states
        return not report["ranks"] and bool(re.search(fault.names, report["text"]))
    if not all(number in ranks and re.fullmatch(kind, ranks[number]["kind"]) for number, kind in fault.kinds.items()):
        return False
    blamed = ranks[next(iter(fault.kinds))]
    printed = [blamed["place"], blamed["cause"], blamed["call"], blamed["detail"], *blamed["children"]]
    return bool(re.search(fault.names, "\n".join(printed)))


def outcome(name: str, ended: Ended, reports: list[dict[str, Any]]) -> str:
    """Describe the end of the job, in the words of ``Fault.outcome`` if possible."""
    statuses = [status for status, action in zip(ended.statuses, FAULTS[name].actions) if action is not None]
    if all(status == 0 for status in statuses) or (name in FOR_EVER and statuses == [None, None]):
        return SPARED
    if None in statuses:
        return "ranks are left"
    if any(report.get("next") and report["next"]["kind"].startswith("ends") for report in reports) or 124 in statuses:
        return ENDED
    return ITSELF


def is_as_it_has_to_be(row: dict[str, Any]) -> bool:
    fault = FAULTS[row["name"]]
    ends = row["outcome"] == fault.outcome or (fault.outcome == ITSELF and row["outcome"] == ENDED)
    return ends and row["named"] is not False


def _blocks(ended: Ended) -> list[str]:
    """Return the messages that the watch printed, each with its indented lines."""
    return [
        found[0].rstrip("\n")
        for output in ended.outputs
        for found in re.finditer(r"^lightning_patches: .*\n(?: .*\n)*", output, re.MULTILINE)
    ]


def main(names: list[str]) -> int:
    wrong = 0
    for name in names or FAULTS:
        row = run(name)
        right = is_as_it_has_to_be(row)
        wrong += not right
        print("right" if right else "WRONG", json.dumps(row, ensure_ascii=False), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
