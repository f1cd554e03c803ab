"""Let the LearningRateFinder callback choose the learning rate of an ordinary training."""

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback, LearningRateFinder
from torch.utils.data import DataLoader, TensorDataset


class Regression(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.lr = 1e-3
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


class CountBatches(Callback):
    seen = 0

    def on_train_batch_end(self, trainer, *args):
        self.seen += trainer.current_epoch == 0


if __name__ == "__main__":
    pl.seed_everything(1)
    x = torch.randn(128, 8)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
    model, counter = Regression(), CountBatches()
    trainer = pl.Trainer(
        accelerator="cpu", max_epochs=2, callbacks=[LearningRateFinder(num_training_steps=20), counter],
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
    )  # fmt: skip
    trainer.fit(model, loader)
    print(f"epoch 0 had {counter.seen} of {len(loader)} batches")
    print(f"learning rate {model.lr:.4g} was found, {trainer.optimizers[0].param_groups[0]['lr']:.4g} was used")
