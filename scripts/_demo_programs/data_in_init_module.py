"""Make the model right on the GPU, and everything else in the same block."""

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


if __name__ == "__main__":
    pl.seed_everything(1)
    x = torch.randn(64, 8)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    trainer = pl.Trainer(
        accelerator="gpu", devices=2, strategy="ddp", max_epochs=1,
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
    )  # fmt: skip
    with trainer.init_module():
        model = Regression()
        loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=1)
        trainer.fit(model, loader)
    print(f"trained on {trainer.strategy.root_device}, {trainer.global_step} steps")
