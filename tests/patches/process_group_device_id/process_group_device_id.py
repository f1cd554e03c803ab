"""The process group of two (simulated) GPUs, made by Fabric or a Trainer that trains. Cases: ``trainer``, ``fabric``,
``swapped`` (a Trainer whose first rank has the second GPU), ``cpu``."""

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset


def bound_device():
    """Return the device id of the process group, or ``None`` if it has none."""
    return str(torch.distributed.group.WORLD.bound_device_id)


def with_trainer():
    class Model(Linear):
        def training_step(self, batch, batch_idx):
            return self.layer(batch[0]).sum()

    options = {"accelerator": "gpu", "devices": [1, 0] if scenario.CASE == "swapped" else 2}
    if scenario.CASE == "cpu":
        options = {"accelerator": "cpu", "devices": 2}
    trainer = scenario.trainer(strategy="ddp", max_epochs=1, **options)
    model = Model()
    trainer.fit(model, DataLoader(TensorDataset(torch.ones(8, 2))))
    scenario.observe(device=str(trainer.strategy.root_device), weights=list(model.parameters()))


def with_fabric():
    fabric = scenario.fabric().Fabric(accelerator="cuda", devices=2, strategy="ddp")
    fabric.launch()
    fabric.seed_everything(2)
    model = torch.nn.Linear(2, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    fabric.backward(model(torch.ones(2, 2, device=fabric.device)).sum())
    optimizer.step()
    fabric.barrier()
    scenario.observe(device=str(fabric.device), weights=list(model.parameters()))


if __name__ == "__main__":
    scenario.pl.seed_everything(2)
    with_fabric() if scenario.CASE == "fabric" else with_trainer()
    scenario.observe(bound=bound_device())
