"""16-mixed with two optimizers, whose backwards run before both steps. The gradients of the first one overflow. Cases:
``fabric``, ``manual`` (optimization of the Trainer), ``torch`` (plain PyTorch). With ``turns``, a step follows each
backward."""

from _expect import bug, same

EXPECT = [
    bug(["fabric", "manual"], stock={"weight": 0.0}, like="torch", needs=("torch.amp:GradScaler",)),
    same(["fabric turns", "manual turns"], "optimizers that take turns", {"weight": 0.5}, on=("2.0.0", "2.6.6")),
]

import _scenario as scenario
import torch

KIND, _, TURNS = scenario.CASE.partition(" ")
x = torch.ones(1, 1)


def parts():
    nets = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    for net in nets:
        net.weight.data.fill_(1.0)
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.5) for net in nets]
    return nets, optimizers, torch.amp.GradScaler("cpu", init_scale=1024.0)


def losses(nets):
    return [(nets[0](x) * float("inf")).sum(), nets[1](x).sum()]


def train(nets, optimizers, backward):
    for loss, optimizer in zip(losses(nets), optimizers):
        backward(loss)
        if TURNS:
            optimizer.step()
    for optimizer in () if TURNS else optimizers:
        optimizer.step()


class Model(scenario.pl.LightningModule):
    def __init__(self, nets, optimizers):
        super().__init__()
        self.automatic_optimization = False
        self.nets, self.both = torch.nn.ModuleList(nets), optimizers

    def configure_optimizers(self):
        return self.both

    def training_step(self, batch, batch_idx):
        train(self.nets, self.optimizers(), self.manual_backward)


if __name__ == "__main__":
    nets, optimizers, scaler = parts()
    with scenario.observing_warnings():
        if KIND == "torch":
            for loss in losses(nets):
                scaler.scale(loss).backward()
            for optimizer in optimizers:
                scaler.step(optimizer)
            scaler.update()
        elif KIND == "fabric":
            plugin = scenario.fabric("plugins.precision.amp").MixedPrecision("16-mixed", "cpu", scaler=scaler)
            fabric = scenario.fabric().Fabric(accelerator="cpu", devices=1, plugins=[plugin])
            both = [fabric.setup(net, optimizer) for net, optimizer in zip(nets, optimizers)]
            train(*zip(*both), fabric.backward)
        else:
            plugins = scenario.pytorch("plugins.precision.amp")
            plugin = plugins.MixedPrecision if hasattr(plugins, "MixedPrecision") else plugins.MixedPrecisionPlugin
            trainer = scenario.trainer(max_epochs=1, plugins=[plugin("16-mixed", "cpu", scaler=scaler)])
            trainer.fit(Model(nets, optimizers), [0])
    scenario.observe(weight=nets[1].weight.item(), scale=scaler.get_scale())
