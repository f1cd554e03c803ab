"""Measure what one self.log() costs in training_step: stock 2.3.3, and a later release without and with the patches.

scripts/benchmark log                             # 2.3.3, 2.6.6, 2.6.6+shim
scripts/benchmark log --release 2.4.0 --rounds 9

Times are CPU times, which other programs on the machine disturb least. Each variant runs in its own process, and the
variants take turns. A process reports the median time of a call over its training steps; the table shows the median
over the rounds.
"""

import argparse
import statistics
import time
from typing import Any

from _benchmark_variants import number, observed, scenario

Rows = list[dict[str, Any]]
BASE = "2.3.3"
STEPS = 300
METRICS = [f"metric_{index}" for index in range(10)]


def measure() -> None:
    """In a variant: train, and write the median time of a call, in seconds."""
    variant = scenario()
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    class Model(variant.pytorch().LightningModule):
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
    variant.trainer(max_epochs=1).fit(model, DataLoader(TensorDataset(torch.ones(STEPS, 1)), batch_size=1))
    variant.observe(seconds=statistics.median(model.times[STEPS // 10 :]))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", default="2.6.6", help=f"the release to compare with {BASE}")
    parser.add_argument("--distribution", default="lightning", choices=["lightning", "pytorch-lightning"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--in-variant", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> Rows:
    if options.in_variant:
        measure()
        return []

    from tests.support.variants import Variant

    variants = [Variant(options.distribution, BASE)]
    variants += [Variant(options.distribution, options.release, shim=shim) for shim in (False, True)]
    times: dict = {variant: [] for variant in variants}
    for _ in range(options.rounds):
        for variant in variants:
            times[variant].append(number(observed("log", variant)["seconds"]))
    medians = {variant: statistics.median(times[variant]) for variant in variants}
    return [
        {
            "variant": str(variant),
            "CPU us a call": medians[variant] * 1e6,
            "fastest": min(times[variant]) * 1e6,
            "slowest": max(times[variant]) * 1e6,
            f"times {BASE}": medians[variant] / medians[variants[0]],
        }
        for variant in variants
    ]
