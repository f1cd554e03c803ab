"""Validation with a custom batch sampler. On two CPU ranks. Cases: ``random`` (the batch sampler shuffles), ``ordered``
(it does not); ``own``: on one rank, a custom loader that counts the reads of its batch sampler."""

from _expect import bug, same, whole_run

IN_ORDER = [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]]


def _in_order(result):
    return [rank["seen"] for rank in result.observations] == IN_ORDER


def _shuffled(result):
    """True if the order has changed, and no item is there twice."""
    return not _in_order(result) and len({item for rank in result.observations for item in rank["seen"]}) == 12


EXPECT = [
    bug("random", stock=whole_run(_in_order), patched=whole_run(_shuffled)),
    same("ordered", "sequential samplers are unchanged", whole_run(lambda result: _in_order(result))),
    same("own", "object that is not a dataloader sees no new calls"),
]

import _scenario as scenario
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, TensorDataset

DEVICES = 1 if scenario.CASE == "own" else 2
ITEMS = TensorDataset(torch.arange(16.0).reshape(-1, 1))


class Batches(BatchSampler):
    """A custom batch sampler of the usual form, which Lightning can copy."""


class Own:
    sampler = RandomSampler(ITEMS)
    asked = 0

    @property
    def batch_sampler(self):
        Own.asked += 1
        return BatchSampler(self.sampler, batch_size=1, drop_last=False)

    def __iter__(self):
        return iter(torch.arange(3.0).reshape(-1, 1, 1))


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen = []

    def validation_step(self, batch, batch_idx):
        self.seen += [int(item) for item in batch[0].flatten()]

    def val_dataloader(self):
        if scenario.CASE == "own":
            return Own()
        sampler = RandomSampler(ITEMS) if scenario.CASE == "random" else SequentialSampler(ITEMS)
        return DataLoader(ITEMS, batch_sampler=Batches(sampler, batch_size=2, drop_last=False))


if __name__ == "__main__":
    scenario.pl.seed_everything(5)
    model = Model()
    trainer = scenario.trainer(devices=DEVICES, strategy="ddp", limit_val_batches=3)
    trainer.validate(model, verbose=False)
    scenario.observe(seen=model.seen, asked=Own.asked)
