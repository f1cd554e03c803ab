"""Issue 20276 with DeepSpeed: accelerate's hooks move a model's inputs to the device where it was loaded. Cases:
``trainer`` and ``fabric``, each also as ``<case>_without_hooks``, the recommended usage. ``ZERO_STAGE`` is DeepSpeed's.
Needs two CUDA devices, simulated or real, accelerate and deepspeed; ``SCENARIO_PACKAGES`` names folders where packages
are installed, if that is outside of the environment."""

import os
import sys

import _scenario as scenario
import torch
from _model import Module
from torch import nn
from torch.cuda import nvtx
from torch.utils.data import DataLoader, TensorDataset

sys.path.extend(folder for folder in os.environ.get("SCENARIO_PACKAGES", "").split(os.pathsep) if folder)

from accelerate import dispatch_model

if os.environ.get("SIMULATED_CUDA") == "1":  # no profiler, for which DeepSpeed marks ranges
    nvtx.range_push = nvtx.range_pop = lambda *_: 0

STAGE = int(os.environ.get("ZERO_STAGE", "2"))
CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "zero_allow_untested_optimizer": True,
    "zero_optimization": {"stage": STAGE},
}


def net():
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)).to(0)
    if scenario.CASE.endswith("_without_hooks"):
        return layers
    return dispatch_model(layers, {"": 0}, force_hooks=True)


def loader():
    torch.manual_seed(3)
    return DataLoader(TensorDataset(torch.randn(16, 4)), batch_size=2)


class Model(Module):
    def __init__(self):
        super().__init__()
        self.net = net()
        self.losses = []

    def training_step(self, batch, batch_idx):
        loss = self.net(batch[0]).pow(2).mean()
        self.losses.append(loss.detach().cpu())
        return loss


def with_trainer():
    strategy = scenario.pl.strategies.DeepSpeedStrategy(config=CONFIG)
    model = Model()
    scenario.trainer(accelerator="gpu", devices=2, max_epochs=1, strategy=strategy).fit(model, loader())
    return model.losses


def with_fabric():
    strategy = scenario.fabric("strategies").DeepSpeedStrategy(config=CONFIG)
    fabric = scenario.fabric().Fabric(accelerator="gpu", devices=2, strategy=strategy)
    fabric.launch()
    model = net()
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    losses = []
    for (batch,) in fabric.setup_dataloaders(loader()):
        loss = model(batch).pow(2).mean()
        fabric.backward(loss, model=model)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach().cpu())
    return losses


if __name__ == "__main__":
    with scenario.observing_errors():
        losses = with_fabric() if scenario.CASE.startswith("fabric") else with_trainer()
        scenario.observe(losses=losses)
