"""A step or a marked method of a Fabric module on one device. Cases: a precision and ``step``, ``marked``, ``autocast``
or ``forward`` (the recommended usage)."""

from _expect import bug, same

FLOAT32 = {"dtype": "torch.float32"}

EXPECT = [
    bug("bf16-mixed step", stock=FLOAT32, like="bf16-mixed forward", since="2.0.2"),
    bug("bf16-mixed marked", stock=FLOAT32, like="bf16-mixed forward", since="2.3.0"),
    bug("64-true step", stock="must have the same dtype", like="64-true forward", since="2.0.2"),
    same("32-true step", "without a precision, nothing changes", {"dtype": "torch.float32", "output": "torch.float32"}),
    same(
        "bf16-mixed autocast",
        "a step that the program puts under autocast",
        {"dtype": "torch.bfloat16"},
        compare="dtype",
    ),
]

import contextlib

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric
PRECISION, HOW = scenario.CASE.split() if " " in scenario.CASE else ("32-true", "step")


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x):
        x = self.layer(x)
        scenario.observe(dtype=str(x.dtype))
        return x

    def training_step(self, x):
        return Model.forward(self, x)

    encode = training_step


if __name__ == "__main__":
    torch.manual_seed(0)
    fabric = Fabric(accelerator="cpu", devices=1, precision=PRECISION)
    model = fabric.setup_module(Model())
    if HOW == "marked":
        model.mark_forward_method("encode")
    call = {"marked": "encode", "forward": "forward"}.get(HOW, "training_step")
    with fabric.autocast() if HOW == "autocast" else contextlib.nullcontext():
        output = getattr(model, call)(torch.ones(3, 4))
    fabric.backward(output.sum())
    scenario.observe(output=str(output.dtype), gradient=model.layer.weight.grad)
