"""Measure memory growth on stock and with the patches: over steps with ten logs, and over consecutive fits.

    scripts/benchmark growth
    scripts/benchmark growth --steps 10000 --fits 200 --releases 2.2.5 2.6.6

"objects" are those of Python's garbage collector. The growth is measured from the first fifth to the end.
"""

from __future__ import annotations

import argparse
import gc
from pathlib import Path
from typing import Any

from _benchmark_variants import number, observed, scenario

Rows = list[dict[str, Any]]
METRICS = [f"metric_{index}" for index in range(10)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--releases", nargs="+", default=("2.2.5", "2.6.6"))
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--in-variant", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> Rows:
    if options.in_variant:
        measure(options.steps, options.fits)
        return []

    from tests.support.variants import Variant

    rows = []
    for release in options.releases:
        for shim in (False, True):
            variant = Variant("lightning", release, shim=shim)
            found = observed("growth", variant, "--steps", str(options.steps), "--fits", str(options.fits))
            for what in ("steps", "fits"):
                objects, kilobytes = (number(part) for part in found[what])
                count = getattr(options, what)
                rows.append(
                    {"variant": str(variant), "over": f"{count} {what}", "objects": objects, "resident KB": kilobytes}
                )
    return rows


def measure(steps: int, fits: int) -> None:
    """In a variant: run both, and observe what came after the first fifth."""
    variant = scenario()
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    def held() -> tuple[int, int]:
        gc.collect()
        status = Path("/proc/self/status").read_text()
        return len(gc.get_objects()), int(status.partition("VmRSS:")[2].split()[0])

    class Model(variant.pytorch().LightningModule):  # type: ignore[misc]
        def __init__(self, first: int = -1) -> None:
            super().__init__()
            self.layer, self.first = torch.nn.Linear(8, 1), first
            self.before = self.after = (0, 0)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if batch_idx == self.first:
                self.before = held()
            loss = self.layer(batch[0]).mean()
            for name in METRICS:
                self.log(name, loss)
            return loss

        def on_train_epoch_end(self) -> None:
            if self.first >= 0:
                self.after = held()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    def fit(model: Any, count: int) -> None:
        data = DataLoader(TensorDataset(torch.ones(4 * count, 8)), batch_size=4)
        variant.trainer(max_epochs=1, accelerator="cpu").fit(model, data)

    model = Model(steps // 5)
    fit(model, steps)
    came = [[after - before for before, after in zip(model.before, model.after)]]
    del model
    before = held()
    for index in range(fits):
        if index == fits // 5:
            before = held()
        fit(Model(), 2)
    came.append([after - earlier for earlier, after in zip(before, held())])
    variant.observe(steps=came[0], fits=came[1])
