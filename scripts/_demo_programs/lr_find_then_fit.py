"""Find a learning rate, then train on two GPUs with it."""

import lightning.pytorch as pl
import torch
from lightning.pytorch.tuner import Tuner
from torch.utils.data import DataLoader, TensorDataset


class Regression(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.lr = 1e-3
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layer(x), y)
        self.log("train_loss", loss, on_epoch=True, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


if __name__ == "__main__":
    pl.seed_everything(1)
    x = torch.randn(64, 8)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
    model = Regression()
    trainer = pl.Trainer(
        accelerator="gpu", devices=2, strategy="ddp", max_epochs=2,
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
    )  # fmt: skip
    Tuner(trainer).lr_find(model, loader, num_training=8)
    trainer.fit(model, loader)
    print(f"trained on {trainer.strategy.root_device}, loss {trainer.callback_metrics['train_loss']:.3f}")
