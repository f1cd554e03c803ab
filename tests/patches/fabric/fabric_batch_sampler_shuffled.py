"""Fabric on two CPU ranks with a custom batch sampler. Cases: ``random`` (it shuffles), ``ordered`` (it does not). With
``direct``, the sampler is passed to the loader."""

from _expect import bug, same


def _first_epoch(ranks):
    """In 1.9, Fabric does not set the epoch of the sampler in a batch sampler, so that all epochs have one order."""
    return [rank["epochs"][0] for rank in ranks]


EXPECT = [
    bug("random", stock=lambda seen: seen["epochs"] == [[0, 2, 4, 6]] * 2, like="{}, direct", compare=_first_epoch),
    same("ordered", "sequential samplers are unchanged", {"epochs": [[0, 2, 4, 6]] * 2}, on="2.6.6"),
]

import _scenario as scenario
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler

ITEMS = torch.arange(8)


class Batches(BatchSampler):
    """A custom batch sampler of the usual form, which Lightning can copy."""


if __name__ == "__main__":
    fabric = scenario.fabric().Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    fabric.seed_everything(5)
    sampler = SequentialSampler(ITEMS) if scenario.CASE == "ordered" else RandomSampler(ITEMS)
    if scenario.CASE.endswith("direct"):
        loader = DataLoader(ITEMS, batch_size=2, sampler=sampler)
    else:
        loader = DataLoader(ITEMS, batch_sampler=Batches(sampler, 2, False))
    loader = fabric.setup_dataloaders(loader)
    scenario.observe(epochs=[torch.cat(list(loader)).tolist() for _ in range(2)])
    fabric.barrier()
