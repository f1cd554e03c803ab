"""Measure what one self.log() costs in training_step: stock 2.3.3, and a later release without and with the patches.

scripts/benchmark log                             # 2.3.3, 2.6.6, 2.6.6+shim
scripts/benchmark log --release 2.4.0 --rounds 9

Times are processor time, which other programs on the machine disturb least. Each arm is a process of its own, and the
arms take turns. In a process the time of a call is the median over the training steps; the table has the median over
the rounds.
"""

import argparse
import statistics
import time
from typing import Any

from _benchmark_arms import number, observed, scenario

Rows = list[dict[str, Any]]
BASE = "2.3.3"
STEPS = 300
METRICS = [f"metric_{index}" for index in range(10)]


def measure() -> None:
    """In an arm: train, and write the median time of a call, in seconds."""
    arm = scenario()
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    class Model(arm.pytorch().LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.times: list = []

        def training_step(self, batch, batch_idx):
            loss = self.layer(batch[0]).mean()
            begin = time.thread_time()
            for name in METRICS:
                self.log(name, loss)
            self.times.append((time.thread_time() - begin) / len(METRICS))
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    model = Model()
    arm.trainer(max_epochs=1).fit(model, DataLoader(TensorDataset(torch.ones(STEPS, 1)), batch_size=1))
    arm.observe(seconds=statistics.median(model.times[STEPS // 10 :]))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", default="2.6.6", help=f"the release to compare with {BASE}")
    parser.add_argument("--distribution", default="lightning", choices=["lightning", "pytorch-lightning"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--in-arm", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> Rows:
    if options.in_arm:
        measure()
        return []

    from tests.support.arms import Arm

    arms = [Arm(options.distribution, BASE)]
    arms += [Arm(options.distribution, options.release, shim=shim) for shim in (False, True)]
    times: dict = {arm: [] for arm in arms}
    for _ in range(options.rounds):
        for arm in arms:
            times[arm].append(number(observed("log", arm)["seconds"]))
    medians = {arm: statistics.median(times[arm]) for arm in arms}
    return [
        {
            "arm": str(arm),
            "CPU us a call": medians[arm] * 1e6,
            "fastest": min(times[arm]) * 1e6,
            "slowest": max(times[arm]) * 1e6,
            f"times {BASE}": medians[arm] / medians[arms[0]],
        }
        for arm in arms
    ]
