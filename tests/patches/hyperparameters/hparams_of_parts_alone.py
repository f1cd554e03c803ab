"""A part that is made in the __init__ of another module has all its hyperparameters. Cases: ``inside`` (the whole makes
the part), ``outside`` (the part is made before), ``derived`` (a class of the part passes on an argument), ``alone`` (no
whole)."""

from _expect import bug, fixed, same

EXPECT = [
    bug("inside", stock=lambda seen: "rate" in seen["part"], patched={"part": {"depth": 3}}, like="outside"),
    same(["outside", "alone"], "hyperparameters of one object are unchanged"),
    fixed(
        "derived",
        "part has the arguments of all its classes",
        stock=lambda seen: "rate" in seen["part"],
        patched={"part": {"width": 3, "depth": 4}},
    ),
]

import _scenario as scenario
import torch

CASE = scenario.CASE
Mixin = scenario.pytorch("core.mixins").HyperparametersMixin


class Base(torch.nn.Module, Mixin):
    def __init__(self, depth: int = 1):
        super().__init__()
        self.save_hyperparameters()


class Part(Base):
    def __init__(self, width: int):
        super().__init__(depth=width + 1)


class Whole(torch.nn.Module, Mixin):
    def __init__(self, rate: float, part=None):
        super().__init__()
        self.part = part or (Part(3) if CASE == "derived" else Base(3))
        self.save_hyperparameters(ignore=["part"])


if __name__ == "__main__":
    if CASE == "alone":
        scenario.observe(part=dict(Part(3).hparams))
    else:
        whole = Whole(rate=0.5, part=Base(3) if CASE == "outside" else None)
        scenario.observe(part=dict(whole.part.hparams), whole=dict(whole.hparams))
