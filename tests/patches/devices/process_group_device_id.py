"""The process group of two (simulated) GPUs, made by Fabric or a Trainer that trains. Cases: ``trainer``, ``fabric``,
``swapped`` (a Trainer whose first rank has the second GPU), ``cpu``."""

from _expect import bug, fixed, same, whole_run


def _each_to_its_own(result):
    return [(rank["bound"], rank["device"]) for rank in result.observations] == [("cuda:0",) * 2, ("cuda:1",) * 2]


EXPECT = [
    *[
        bug(
            case,
            stock={"bound": "None"},
            patched=whole_run(_each_to_its_own),
            simulated_cuda=True,
            compare=("bound", "device", "weights") if case == "trainer" else ("bound", "device"),
        )
        for case in ("trainer", "fabric")
    ],
    same(
        "cpu",
        "cpu ranks have no device id",
        whole_run(lambda result: [rank["bound"] for rank in result.observations] == ["None", "None"]),
        alone=True,
    ),
    fixed(
        "swapped",
        "group has the device of each rank",
        stock=[{"bound": "None"}, {"bound": "None"}],
        patched=[{"bound": "cuda:1"}, {"bound": "cuda:0"}],
        alone=True,
        simulated_cuda=True,
        on="2.1.4",
    ),
    same(
        "swapped", "ranks train as on stock", compare=("device", "weights"), alone=True, simulated_cuda=True, on="2.1.4"
    ),
]

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
