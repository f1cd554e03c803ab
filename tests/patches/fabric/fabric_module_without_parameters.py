"""``fabric.setup`` of modules without parameters. Cases: ``setup``, ``setup_module``, each with ``_stay``
(move_to_device=False); ``asked`` (a module with parameters, which counts calls of ``parameters``)."""

from _expect import bug, same

CASES = ("setup", "setup_stay", "setup_module", "setup_module_stay")

EXPECT = [
    bug(CASES, stock="StopIteration", patched={"state": ["weight"]}),
    same("asked", "module has no more parameter calls than on stock", on="2.0.1"),
]

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.tensor(2.0))

    def forward(self, x):
        return x.pow(2).mean() * self.weight


class Asked(torch.nn.Linear):
    asked = 0

    def parameters(self, recurse=True):
        self.asked += 1
        return super().parameters(recurse)


if __name__ == "__main__" and scenario.CASE == "asked":
    module = Asked(2, 1)
    Fabric(accelerator="cpu", devices=1).setup(module)
    scenario.observe(asked=module.asked)
elif __name__ == "__main__":
    fabric = Fabric(accelerator="cpu", devices=1)
    loss = Loss()
    method = fabric.setup_module if scenario.CASE.startswith("setup_module") else fabric.setup
    with scenario.observing_errors():
        wrapped = method(loss, move_to_device=not scenario.CASE.endswith("_stay"))
    x = torch.ones(3, requires_grad=True)
    fabric.backward(wrapped(x))
    scenario.observe(
        grad=x.grad,
        device=str(wrapped.device),
        parameters=[name for name, _ in wrapped.named_parameters()],
        state=list(wrapped.state_dict()),
        same=wrapped.module is loss,
    )
