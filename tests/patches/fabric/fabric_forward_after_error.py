"""A marked method of a Fabric module ends in an error before it is reached. Cases: ``step``, ``marked``, ``caught`` (an
error of the method), ``called`` (no error); with ``deleted`` after it, the attribute that is left is deleted."""

from _expect import bug, same

EXPECT = [
    bug("step", stock={"calls": ["training_step", "forward"]}, like="step deleted"),
    bug("marked", stock={"calls": ["encode", "forward"]}, like="marked deleted", since="2.3.0"),
    same(["caught", "called"], "other calls are unchanged", {"calls": ["forward", "forward"]}),
]

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric
WORDS = scenario.CASE.split()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x):
        return "forward"

    def training_step(self, x):
        if WORDS[0] == "caught":
            raise ValueError("an error of the method")
        return "training_step"

    def encode(self, x):
        return "encode"


def refuse(module, args):
    raise ValueError("a bad batch")


if __name__ == "__main__":
    fabric = Fabric(accelerator="cpu", devices=1, strategy="ddp")
    fabric.launch()
    model = fabric.setup_module(Model())
    name = "training_step"
    if WORDS[0] == "marked":
        model.mark_forward_method("encode")
        name = "encode"
    refused = WORDS[0] in ("step", "marked")
    handle = model._forward_module.register_forward_pre_hook(refuse) if refused else None
    try:
        getattr(model, name)(torch.ones(1, 1))
    except ValueError:
        pass
    if handle:
        handle.remove()
    if WORDS[1:]:
        del model.module.forward
    scenario.observe(calls=[model(torch.ones(1, 1)) for _ in range(2)])
