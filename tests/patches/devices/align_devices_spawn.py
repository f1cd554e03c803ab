"""Issue 20276 with ranks that are spawned: a model with accelerate's hooks, made in ``configure_model``. Cases:
``ddp_spawn``, and ``ddp_spawn_without_hooks``, the recommended usage. Needs two CUDA devices, simulated or real, and
accelerate."""

import _scenario as scenario
import torch
from _model import Module
from accelerate import dispatch_model
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(Module):
    def __init__(self):
        super().__init__()
        self.net = None
        self.losses = []

    def configure_model(self):
        if self.net is None:
            torch.manual_seed(1)
            self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)).to(0)
            if not scenario.CASE.endswith("_without_hooks"):
                self.net = dispatch_model(self.net, {"": 0}, force_hooks=True)

    def training_step(self, batch, batch_idx):
        loss = self.net(batch[0]).pow(2).mean()
        self.losses.append(loss.detach().cpu())
        return loss

    def on_train_end(self):
        scenario.observe(losses=self.losses)


if __name__ == "__main__":
    torch.manual_seed(3)
    data = DataLoader(TensorDataset(torch.randn(16, 4)), batch_size=2)
    scenario.trainer(accelerator="gpu", devices=2, max_epochs=1, strategy="ddp_spawn").fit(Model(), data)
