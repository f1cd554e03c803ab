"""Measure the hang watch with real ranks over gloo; the tables of tests/distributed/README.md.

    scripts/benchmark hang_watch faults [NAME ...] [--py-spy PROGRAM]  # each fault: with the watch, with torch alone
                                                   # (with a timeout of 10 s), with its DETAIL, and by py-spy
    scripts/benchmark hang_watch pauses --trials 200  # healthy ranks with long pauses: none may be ended
    scripts/benchmark hang_watch steps --pairs 8   # time of a step with the watch, relative to without

The complete output goes to --out, one JSON line per run. Only exit statuses are checked.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from tests.distributed.hang_faults import FAULTS
from tests.distributed.processes import Ended, run_ranks

Rows = list[dict[str, Any]]
MODES: dict[str, dict[str, str]] = {
    "watch": {"LIGHTNING_PATCHES_HANG_TIMEOUT": "3:abort"},
    "torch": {"PG_TIMEOUT": "10"},
    "detail": {"PG_TIMEOUT": "10", "TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
}
PAUSES = ("waits_for_a_child", "writes_slowly", "computes_in_c", "works_a_while", "computes_a_while_with_the_gil")
STEPS = """
import os, sys, time, torch
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(20)])
data = torch.randn(32, 256)
def step():
    loss = model(data).square().mean()
    loss.backward()
    for parameter in model.parameters():
        parameter.grad = None
    torch.distributed.all_reduce(torch.ones(1000))
from lightning_patches.ranks import hang
torch.distributed.init_process_group("gloo")
for window in range(int(sys.argv[1])):
    for on in (window % 2 == 0, window % 2 == 1):
        watch = hang.watch_hangs(float(sys.argv[2])) if on else None
        time.sleep(0.3)
        for _ in range(10):
            step()
        torch.distributed.barrier()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(int(sys.argv[3])):
            step()
        if os.environ["RANK"] == "0":
            print("WINDOW", window, int(on), time.perf_counter() - wall, time.process_time() - cpu, flush=True)
        if watch is not None:
            watch.stop()
        torch.distributed.barrier()
"""


def faults(args: argparse.Namespace) -> Rows:
    rows = []
    for name in args.names or FAULTS:
        fault = FAULTS[name]
        for mode, own in ((mode, MODES[mode]) for mode in args.modes):
            spied: list[str] = []
            mark = f"{os.getpid()}-{name}-{mode}"
            if args.py_spy and mode == "torch":
                threading.Thread(target=spy, args=(args.py_spy, mark, spied, args.limit - 10), daemon=True).start()
            leave = "Error: " if mode != "watch" and not args.py_spy else None  # torch has ended a rank
            split = [None if action is None else action.split() for action in fault.actions]
            ended = run_ranks(
                "hang_ranks", split, {**fault.variables, **own, "MARK": mark}, timeout=args.limit, leave_when=leave
            )
            write(args, {"fault": name, "mode": mode, **as_dict(ended), "py_spy": spied})
            rows.append({"fault": name, "mode": mode, "seconds": ended.seconds, "statuses": str(ended.statuses)})
    return rows


def spy(program: str, mark: str, into: list[str], seconds: float) -> None:
    """Dump the stacks of all ranks that are there when they have hung for a while."""
    time.sleep(seconds)
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            is_rank = f"MARK={mark}".encode() in Path("/proc", name, "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if is_rank:
            command = [program, "dump", "--pid", name]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=8)
            except subprocess.TimeoutExpired as error:
                into.append(str(error))
            else:
                into.append(f"{done.stdout}{done.stderr}")


def pauses(args: argparse.Namespace) -> Rows:
    random_, ended_ones, long_ones = random.Random(args.seed), 0, 0
    for trial in range(args.trials):
        action = random_.choice(PAUSES)
        pauser = random_.randrange(2)
        actions = [[action if rank == pauser else "arrives", "after"] for rank in range(2)]
        ended = run_ranks("hang_ranks", [*actions], {"LIGHTNING_PATCHES_HANG_TIMEOUT": "1:abort"}, timeout=300)
        long_ones += "Ranks have waited" in "".join(ended.outputs)
        ended_ones += ended.statuses != [0, 0]
        write(args, {"trial": trial, "action": action, "pauser": pauser, **as_dict(ended)})
    return [{"trials": args.trials, "pauses longer than the timeout": long_ones, "jobs ended": ended_ones}]


def steps(args: argparse.Namespace) -> Rows:
    rows = []
    program = Path(__file__).resolve().parents[1] / "tests" / "distributed" / "programs" / "_steps.py"
    program.write_text(STEPS)
    try:
        for timeout in ("300", "3"):
            arguments = [str(args.pairs), timeout, str(args.steps)]
            ended = run_ranks("_steps", [arguments, arguments], {}, timeout=900)
            found = re.findall(r"WINDOW (\d+) ([01]) (\S+) (\S+)", ended.outputs[0])
            assert len(found) == 2 * args.pairs, ended
            for kind, column in (("wall", 2), ("CPU", 3)):
                by_window = {(int(row[0]), row[1]): float(row[column]) for row in found}
                ratios = sorted(by_window[i, "1"] / by_window[i, "0"] for i in range(args.pairs))
                what = f"timeout {timeout} s, {kind} time of {args.steps} steps, watched to not, {args.pairs} pairs"
                spread = {"lowest": ratios[0], "highest": ratios[-1]}
                rows.append({"what": what, "ratio": statistics.median(ratios), **spread})
    finally:
        program.unlink()
    return rows


def as_dict(ended: Ended) -> dict[str, Any]:
    return {"statuses": ended.statuses, "seconds": round(ended.seconds, 1), "outputs": ended.outputs}


def write(args: argparse.Namespace, record: dict[str, Any]) -> None:
    with open(args.out, "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    print({name: record[name] for name in record if name not in ("outputs", "py_spy")}, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="hang_watch.jsonl")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("faults")
    command.add_argument("names", nargs="*", choices=[[], *FAULTS])
    command.add_argument("--py-spy", metavar="PROGRAM")
    command.add_argument("--limit", type=float, default=60.0, help="seconds until what is left of a run is killed")
    command.add_argument("--modes", nargs="+", choices=MODES, default=[*MODES])
    command.set_defaults(run=faults)
    command = commands.add_parser("pauses")
    command.add_argument("--trials", type=int, default=200)
    command.add_argument("--seed", type=int, default=0)
    command.set_defaults(run=pauses)
    command = commands.add_parser("steps")
    command.add_argument("--pairs", type=int, default=8)
    command.add_argument("--steps", type=int, default=300)
    command.set_defaults(run=steps)


def run(args: argparse.Namespace) -> Rows:
    rows: Rows = args.run(args)
    return rows
