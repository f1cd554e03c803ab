"""A compiled module is passed to ``fabric.setup``. Cases: ``""``, ``kept`` (Fabric must not change the compilation),
``plain`` (the same module, not compiled), ``function`` (a strategy that returns a function)."""

from _expect import bug, fixed, same

NO_LENGTH = "Net does not support len()"

EXPECT = [
    bug("kept", stock=NO_LENGTH, patched=lambda seen: bool(seen["module"]), like="plain", needs=("torch:compile",)),
    fixed("", "compiled module trains", stock=NO_LENGTH, like="plain", on=("2.0.0", "2.1.4")),
    same(
        "function",
        "strategy may return an object that is not a module",
        lambda seen: bool(seen["module"]),
        on=("2.2.5", "2.6.6"),
    ),
]

import inspect

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)


class ByFunction(scenario.fabric("strategies").SingleDeviceStrategy):
    def setup_module(self, module):
        return lambda *args: module(*args)


if __name__ == "__main__":
    own = {"strategy": ByFunction("cpu")} if scenario.CASE == "function" else {}
    fabric = Fabric(accelerator="cpu", devices=1, **own)
    torch.manual_seed(3)
    net = Net()
    module = net if scenario.CASE in ("plain", "function") else torch.compile(net, backend="eager")
    options = {}
    if scenario.CASE == "kept" and "_reapply_compile" in inspect.signature(fabric.setup).parameters:
        options["_reapply_compile"] = False
    with scenario.observing_errors():
        wrapped, optimizer = fabric.setup(module, torch.optim.SGD(net.parameters(), lr=0.1), **options)
    batch = torch.arange(6.0).reshape(3, 2)
    for _ in range(2):
        optimizer.zero_grad()
        fabric.backward(wrapped(batch).pow(2).mean())
        optimizer.step()
    with scenario.observing_errors():
        of_wrapper = wrapped.module
    scenario.observe(weights=list(net.parameters()), module=of_wrapper is module or of_wrapper is net)
