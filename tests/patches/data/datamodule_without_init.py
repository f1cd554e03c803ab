"""A LightningDataModule whose __init__ does not call super().__init__(). Case: ``super`` for one that does."""

from _expect import bug

EXPECT = [bug(stock="has no attribute", patched={"steps": 2}, like="super")]

import _scenario as scenario
import torch


class Data(scenario.pl.LightningDataModule):
    def __init__(self):
        if scenario.CASE == "super":
            super().__init__()
        self.size = 2

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.ones(4, 32), batch_size=self.size)


if __name__ == "__main__":
    trainer = scenario.trainer(max_epochs=1, limit_val_batches=0)
    trainer.fit(scenario.BoringModel(), datamodule=Data())
    scenario.observe(steps=trainer.global_step)
