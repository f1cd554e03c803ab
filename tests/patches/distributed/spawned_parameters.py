"""Parameters of two CPU ranks that strategy="ddp_spawn" starts. Each rank adds its rank + 1 to the weight, which is 0,
and waits for the other. Cases: ``trainer``, ``fabric`` (the model is passed to the launched function), ``one`` (Fabric,
one process; the script looks at the model afterwards), ``asked`` (Fabric; the model counts who asks for its
parameters)."""

from _expect import bug, same

SHARED = {"weight": 3.0}

EXPECT = [
    bug(["trainer", "fabric"], stock=SHARED),
    same("one", "script sees the parameters of one process"),
    same("asked", "model has no more parameter calls than on stock", compare="asked"),
]

import _scenario as scenario
import torch

CASE = scenario.CASE


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1), requires_grad=False)
        self.register_buffer("count", torch.zeros(1))
        self.asked = 0.0

    def parameters(self, recurse=True):
        self.asked += 1
        return super().parameters(recurse)

    def on_train_start(self):
        add(self, self.trainer.strategy)

    def configure_optimizers(self):
        return torch.optim.SGD(self.layer.parameters(), lr=0.1)


def add(model, strategy):
    rank = scenario.rank()
    strategy.barrier()
    for turn in range(strategy.num_processes):
        if turn == rank:
            with torch.no_grad():
                model.weight += rank + 1
                model.count += rank + 1
        strategy.barrier()
    scenario.observe(weight=float(model.weight), count=float(model.count))
    if CASE == "asked":
        scenario.observe(asked=model.asked)


def launched(fabric, model):
    add(model, fabric.strategy)


if __name__ == "__main__":
    model = Model()
    if CASE == "trainer":
        trainer = scenario.trainer(devices=2, strategy="ddp_spawn", max_steps=1, limit_val_batches=0)
        trainer.fit(model)
    else:
        fabric = scenario.fabric().Fabric(accelerator="cpu", devices=1 if CASE == "one" else 2, strategy="ddp_spawn")
        fabric.launch(launched, model)
        if CASE == "one":
            scenario.observe(afterwards=float(model.weight))
