"""Measure the cost of GradientSyncCheck: one check relative to a training step, with two ranks on the CPU.

scripts/benchmark gradient_sync_check             # 10 million parameters in 40 tensors, 20 steps
scripts/benchmark gradient_sync_check --width 1024 --layers 10

A step is forward, backward with DDP (gloo) and Adam's update. Times are medians of rank zero's wall-clock
time. The share of the training is the ratio of check and step, divided by every_n_steps.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from functools import partial
from typing import Any

Rows = list[dict[str, Any]]
BATCH = 64


def measure(options: argparse.Namespace) -> None:
    """In a rank: train by turns with and without a check."""
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    from lightning_patches.ranks.gradient_sync_check import GradientSyncCheck

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(1)
    layers = [nn.Linear(options.width, options.width) for _ in range(options.layers)]
    model = DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.Adam(model.parameters())
    check = GradientSyncCheck(action="raise")
    steps, checks, between = [], [], []
    for step in range(options.steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        model(torch.randn(BATCH, options.width)).pow(2).mean().backward()
        trained = time.perf_counter()
        check.check(model, optimizer, step)
        checked = time.perf_counter()
        optimizer.step()
        steps.append(trained - begin + time.perf_counter() - checked)
        checks.append(checked - trained)
        begin = time.perf_counter()
        check._is_due(optimizer)  # the hook's work in the steps between two checks
        between.append(time.perf_counter() - begin)
    if torch.distributed.get_rank() == 0:
        warm = slice(options.steps // 4, None)
        step, one, idle = (statistics.median(times[warm]) for times in (steps, checks, between))
        count = sum(parameter.numel() for parameter in model.parameters())
        rows = [
            {"what": f"step, {count / 1e6:.1f} million parameters in {2 * options.layers} tensors", "ms": step * 1e3}
        ]
        rows += [{"what": "check", "ms": one * 1e3, "% of a step": 100 * one / step}]
        rows += [{"what": "hook without a check", "ms": idle * 1e3, "% of a step": 100 * idle / step}]
        for every in (1, 10, 100, 1000):
            share = (one / every + idle) / step
            rows += [{"what": f"every_n_steps={every}", "ms": share * step * 1e3, "% of a step": 100 * share}]
        print(json.dumps(rows))
    torch.distributed.destroy_process_group()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--width", type=int, default=700, help="features of each layer")
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--steps", type=int, default=20)


def run(options: argparse.Namespace) -> Rows:
    if "RANK" in os.environ and "BENCHMARK_RANK" in os.environ:
        measure(options)
        sys.exit()
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    common = {
        **os.environ,
        "BENCHMARK_RANK": "1",
        "_LIGHTNING_PATCHES_IMPORT_ONLY": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    command = [sys.executable, *sys.argv]
    start = partial(subprocess.Popen, command, stdout=subprocess.PIPE, text=True)
    ranks = [start(env={**common, "RANK": str(rank)}) for rank in range(2)]
    try:
        said = [rank.communicate(timeout=600)[0] for rank in ranks]
        statuses = [rank.returncode for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    if any(statuses):
        sys.exit(f"the ranks ended with {statuses}")
    rows: Rows = json.loads(said[0].splitlines()[-1])
    return rows
