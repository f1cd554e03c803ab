"""Count graphs and graph breaks of a compiled LightningModule in training, on stock and with the patches.

    scripts/benchmark compile
    scripts/benchmark compile --releases 2.2.5 2.6.6

Uses the backend "eager". "frames" and "graphs" count compilations, including recompilations; "breaks" counts graph
breaks. With torch 2.12 and later, stock Lightning cannot log in a compiled module
(compiled-log), so the program logs nothing.
"""

from __future__ import annotations

import argparse
from typing import Any

from _benchmark_variants import number, observed, scenario

Rows = list[dict[str, Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--releases", nargs="+", default=("2.2.5", "2.3.3", "2.6.6"))
    parser.add_argument("--in-variant", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> Rows:
    if options.in_variant:
        measure()
        return []

    from tests.support.variants import Variant

    rows = []
    for release in options.releases:
        for shim in (False, True):
            variant = Variant("lightning", release, shim=shim)
            found = observed("compile", variant)
            counts = {name: int(number(found[name])) for name in ("frames", "graphs", "breaks")}
            rows.append({"variant": str(variant), **counts})
    return rows


def measure() -> None:
    """In a variant: train and validate for two epochs, with a last batch of another size."""
    variant = scenario()
    import torch
    from torch._dynamo.utils import counters
    from torch.utils.data import DataLoader, TensorDataset

    class Model(variant.pytorch().LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.layer(batch[0]).mean()
            return loss * 2 if self.trainer.training else loss

        def validation_step(self, batch: Any, batch_idx: int) -> Any:
            return self.layer(batch[0]).mean() if self.trainer.evaluating else None

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    data = DataLoader(TensorDataset(torch.ones(22, 8)), batch_size=4)
    model = torch.compile(Model(), backend="eager")
    variant.trainer(max_epochs=2, accelerator="cpu").fit(model, data, data)
    breaks = sum(counters["graph_break"].values())
    variant.observe(frames=counters["frames"]["ok"], graphs=counters["stats"]["unique_graphs"], breaks=breaks)
