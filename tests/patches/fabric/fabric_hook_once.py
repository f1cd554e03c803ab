"""A Fabric module whose forward returns a parameter. Cases: ``parameter``, ``view`` (the recommended usage), ``input``,
``misuse`` (a backward without Fabric, in 16-mixed)."""

from _expect import bug, fixed, same

EXPECT = [
    bug("parameter", stock=lambda seen: seen["hooks"] == 20, like="view", compare="gradient"),
    bug("input", stock={"hooks": 20}, like="view", compare="gradient"),
    fixed("parameter", "a parameter has one hook", patched={"hooks": 1}),
    same("misuse", "a backward without Fabric is refused", "requires you to call `fabric.backward(loss)`"),
]

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric


class Table(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(4, 2)
        torch.nn.init.ones_(self.table.weight)

    def forward(self, x):
        weight = self.table.weight
        return {"view": weight.view_as(weight), "input": x}.get(scenario.CASE, weight)


if __name__ == "__main__":
    fabric = Fabric(accelerator="cpu", devices=1)
    if scenario.CASE == "misuse":
        scaler = torch.amp.GradScaler("cpu")
        precision = scenario.fabric("plugins").MixedPrecision("16-mixed", "cpu", scaler=scaler)
        fabric = Fabric(accelerator="cpu", devices=1, plugins=[precision])
    model = fabric.setup_module(Table())
    x = torch.ones(4, 2, requires_grad=True)
    for _ in range(20):
        loss = model(x).sum()
        with scenario.observing_errors():
            loss.backward() if scenario.CASE == "misuse" else fabric.backward(loss)
    leaf = x if scenario.CASE == "input" else model.table.weight
    scenario.observe(hooks=len(leaf._backward_hooks or ()), gradient=leaf.grad)
