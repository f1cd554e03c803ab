"""Train on two processes, one of which waits for a disk that does not answer."""

import time

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset


class Regression(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Data(pl.LightningDataModule):
    def setup(self, stage):
        if self.trainer.global_rank == 1:
            read_from_disk()
        x = torch.randn(64, 8)
        self.data = TensorDataset(x, x.sum(1, keepdim=True))
        print(f"rank {self.trainer.global_rank} has its data", flush=True)

    def train_dataloader(self):
        return DataLoader(self.data, batch_size=4)


def read_from_disk():
    time.sleep(100_000)


if __name__ == "__main__":
    trainer = pl.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=1,
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
    )  # fmt: skip
    trainer.fit(Regression(), datamodule=Data())
