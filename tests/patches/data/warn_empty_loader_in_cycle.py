"""One of the loaders of a CombinedLoader is empty, or can be read only once (``once``), or none is."""

from _expect import same, warns

NAMES = "one of these loaders is empty when it starts again: number 1 (DataLoader). Remove it"

EXPECT = [
    warns(["", "once"], "warning names the empty loader", NAMES, on=("2.0.0", "2.6.6")),
    same("none", "warning is absent if all loaders have batches", {"steps": 6, "warnings": []}),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, IterableDataset

CombinedLoader = scenario.pytorch("utilities.combined_loader").CombinedLoader


class Stream(IterableDataset):
    def __init__(self, count):
        self.values = iter(torch.ones(count, 32)) if scenario.CASE == "once" else [torch.ones(32)] * count

    def __iter__(self):
        return iter(self.values)


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        return super().training_step(batch[0], batch_idx)


if __name__ == "__main__":
    count = {"none": 2, "once": 1}.get(scenario.CASE, 0)
    loaders = [DataLoader(torch.ones(3, 32)), DataLoader(Stream(count))]
    trainer = scenario.trainer(max_epochs=2, limit_val_batches=0)
    with scenario.observing_warnings():
        trainer.fit(Model(), CombinedLoader(loaders, mode="max_size_cycle"))
    scenario.observe(steps=trainer.global_step)
