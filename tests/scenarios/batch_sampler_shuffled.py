"""Issue 20326: validation with a batch sampler of the user's.

On two CPU ranks. Cases: ``random`` (the batch sampler shuffles), ``ordered`` (it does not).
"""

import _scenario as scenario
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, TensorDataset

pl = scenario.pytorch()
ITEMS = TensorDataset(torch.arange(16.0).reshape(-1, 1))


class Batches(BatchSampler):
    """One of the user's own, of the usual kind: Lightning can make another like it."""


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen = []

    def validation_step(self, batch, batch_idx):
        self.seen += [int(item) for item in batch[0].flatten()]

    def val_dataloader(self):
        sampler = RandomSampler(ITEMS) if scenario.CASE == "random" else SequentialSampler(ITEMS)
        return DataLoader(ITEMS, batch_sampler=Batches(sampler, batch_size=2, drop_last=False))


if __name__ == "__main__":
    pl.seed_everything(5)
    model = Model()
    trainer = scenario.trainer(accelerator="cpu", devices=2, strategy="ddp", limit_val_batches=3)
    trainer.validate(model, verbose=False)
    scenario.observe(seen=model.seen)
