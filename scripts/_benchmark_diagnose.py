"""Measure how fast `lightning-patches diagnose` reads logs, in megabytes per second of CPU time.

scripts/benchmark diagnose              # 200 MB of each kind, five rounds
scripts/benchmark diagnose --size 20 --rounds 1

Each log ends with a traceback, which must be found. CPU time is the measure that other programs disturb least. The
kinds take turns; the table shows the median, minimum and maximum of the rounds. The kinds are progress bars that
overwrite themselves, logger lines, warnings, endless tracebacks, lines with an identifier each, and source code with
only different lines, the worst case.
"""

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]
ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "lightning_patches", "diagnose", "--requirement", "lightning==2.2.5", "--json"]
TRACEBACK = b"""Traceback (most recent call last):
  File "/env/lib/lightning/pytorch/trainer/connectors/logger_connector/result.py", line 241, in compute
    value = self.meta.sync(self.value)
RuntimeError: No backend type associated with device type cpu
"""


def progress_bars() -> Iterator[bytes]:
    for step in itertools.count():
        end = b"\n" if step % 100 == 99 else b"\r"
        bar = "█" * (step % 100 // 10)
        text = f"Epoch {step // 100}:  {step % 100}%|{bar:10}| {step % 100}/100 [00:10<00:20, 3.1it/s, train_loss=0.5]"
        yield text.encode() + end


def logger() -> Iterator[bytes]:
    for step in itertools.count():
        loss = random.random()
        yield b"[rank%d]: 2026-01-02 03:04:05,678 - training.loop - INFO - step %d: loss=%.4f " % (step % 8, step, loss)
        yield b"lr=%.6f; validation batch took %d ms, checkpoint saved to /data/run_%d\n" % (loss, step % 97, step % 7)


def warnings() -> Iterator[bytes]:
    for step in itertools.count():
        yield b"/env/lib/torch/utils/data/dataloader.py:%d: UserWarning: This DataLoader will create %d" % (
            step,
            step % 64,
        )
        yield b" worker processes in total. Our suggested max number of worker in current system is 2.\n"


def tracebacks() -> Iterator[bytes]:
    yield from itertools.repeat(TRACEBACK)


def identifiers() -> Iterator[bytes]:
    for step in itertools.count():
        sample, worker = uuid.UUID(int=random.getrandbits(128)), random.getrandbits(48)
        yield f"2026-01-02 03:04:05,678 INFO worker {worker:012x}: sample {sample} read in {step % 97} ms\n".encode()


def source() -> Iterator[bytes]:
    for path in sorted(Path(sysconfig.get_path("purelib")).rglob("*.py")):
        yield path.read_bytes()


def write(path: Path, lines: Iterable[bytes], size: int) -> int:
    with open(path, "wb") as file:
        for line in lines:
            if file.tell() > size:
                break
            file.write(line)
        file.write(b"\n" + TRACEBACK)
        return file.tell()


def seconds(path: str) -> float:
    """Processor time of one diagnosis."""
    before = os.times()
    done = subprocess.run([*COMMAND, path], cwd=ROOT, capture_output=True, text=True)
    after = os.times()
    names = [match["name"] for match in json.loads(done.stdout)["matches"]]
    if done.returncode or "logged-metrics-device" not in names:
        sys.exit(f"{path}: status {done.returncode}, found {names}\n{done.stderr}")
    return after.children_user + after.children_system - before.children_user - before.children_system


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=int, default=200, metavar="MB", help="size of each log (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="times each is read (default: %(default)s)")


def run(options: argparse.Namespace) -> Rows:
    kinds = (progress_bars, logger, warnings, tracebacks, identifiers, source)
    with tempfile.TemporaryDirectory() as directory:
        sizes = {"a traceback": write(Path(directory, "a traceback"), [], 0)}
        for kind in kinds:
            name = kind.__name__.replace("_", " ")
            sizes[name] = write(Path(directory, name), kind(), options.size * 1_000_000)
        times: dict = {name: [] for name in sizes}
        for _ in range(options.rounds):
            for name, took in times.items():
                took.append(seconds(os.path.join(directory, name)))
    rows = []
    for name, took in times.items():
        middle, low, high = (sizes[name] / 1e6 / of(took) for of in (statistics.median, max, min))
        row = {"log": name, "MB": round(sizes[name] / 1e6), "CPU s": round(statistics.median(took), 2)}
        speed = {"MB/s": round(middle), "slowest": round(low), "fastest": round(high)} if middle > 1 else {}
        rows.append({**row, **speed})
    return rows
