"""``fabric.clip_gradients`` with an optimizer of two modules. Cases: ``norm`` and ``value`` (of one module), ``whole``
(of both), ``frozen`` (the other module has no gradients)."""

from _expect import same, warns

EXPECT = [
    warns(["norm", "value"], "gradients of another module cause a warning", "1 of 2 are not", on=("2.0.0", "2.6.6")),
    same(["whole", "frozen"], "warning is absent if all gradients are the module's"),
]

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric

if __name__ == "__main__":
    torch.manual_seed(0)
    fabric = Fabric(accelerator="cpu", devices=1)
    both = torch.nn.ModuleList(torch.nn.Linear(1, 1, bias=False) for _ in range(2))
    optimizer = torch.optim.SGD(both.parameters(), lr=0.1)
    for net in both if scenario.CASE != "frozen" else both[:1]:
        fabric.backward(net(torch.full((1, 1), 30.0)).sum())
    module = fabric.setup_module(both if scenario.CASE == "whole" else both[0])
    optimizer = fabric.setup_optimizers(optimizer)
    limit = {"clip_val": 1.0} if scenario.CASE == "value" else {"max_norm": 1.0}
    with scenario.observing_warnings():
        for _ in range(2):
            fabric.clip_gradients(module, optimizer, **limit)
    scenario.observe(gradients=[net.weight.grad for net in both])
