"""Issue 20326, after its first fix: validation with a batch sampler that has no sampler."""

from _expect import bug

EXPECT = [bug(stock="object has no attribute 'sampler'", patched={"seen": [0, 8, 1, 9, 2, 10]})]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset

ITEMS = TensorDataset(torch.arange(16.0).reshape(-1, 1))


class Pairs:
    """A batch sampler that yields pairs."""

    def __iter__(self):
        return iter([[i, i + 8] for i in range(8)])

    def __len__(self):
        return 8


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen = []

    def validation_step(self, batch, batch_idx):
        self.seen += [int(item) for item in batch[0].flatten()]


if __name__ == "__main__":
    model = Model()
    trainer = scenario.trainer(devices=1, limit_val_batches=3)
    trainer.validate(model, DataLoader(ITEMS, batch_sampler=Pairs()), verbose=False)
    scenario.observe(seen=model.seen)
