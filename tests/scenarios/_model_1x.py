"""Common parts of the scenarios for Lightning 1.x: a model, its data, a Trainer."""

import sys
from pathlib import Path

_SUPPORT = str(Path(__file__).resolve().parents[1] / "support")
sys.path.insert(0, _SUPPORT)
import with_packages_of_1x  # noqa: F401

sys.path.remove(_SUPPORT)

import _scenario as scenario
import torch

pl = scenario.pytorch()


class Model(pl.LightningModule):
    def __init__(self, lr: float = 0.1):
        super().__init__()
        torch.manual_seed(1)
        self.lr = lr
        self.layer = torch.nn.Linear(4, 2)

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).pow(2).mean()
        self.log("loss", loss)
        return loss

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.arange(64.0).reshape(16, 4) / 64, batch_size=4)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


def lr_of(trainer):
    """Return the optimizer's last learning rate."""
    return round(trainer.optimizers[0].param_groups[0]["lr"], 6)
