"""A part that another module creates in its __init__ has that module's hyperparameters. Cases: ``inside`` (the whole
makes the part), ``outside`` (the part is made before), ``derived`` (a part whose class passes its base class another
value), ``alone`` (no whole)."""

from _expect import bug, patched, same

EXPECT = [
    bug(
        "inside",
        stock={"part": {"width": 7, "depth": 5}},
        patched={"part": {"width": 3, "depth": 1}},
        like="outside",
        compare=("part", "whole"),
    ),
    same(["outside", "alone"], "hparams of an object without parts are unchanged"),
    same("inside", "hparams of the whole keep their names", lambda seen: "part" in seen["keys"], compare="keys"),
    patched("derived", "part has the hparams of its most derived class", {"part": {"width": 3, "depth": 1}}),
]

import _scenario as scenario
import torch

CASE = scenario.CASE
Mixin = scenario.pytorch("core.mixins").HyperparametersMixin


class Base(torch.nn.Module, Mixin):
    def __init__(self, width: int, depth: int = 1):
        super().__init__()
        self.save_hyperparameters()


class Part(Base):
    def __init__(self, width: int):
        super().__init__(width=width + 1)
        self.layer = torch.nn.Linear(4, width)


class Whole(torch.nn.Module, Mixin):
    def __init__(self, width: int, depth: int = 5, part=None):
        super().__init__()
        kind = Part if CASE == "derived" else Base
        self.part = part or kind(width=3)
        self.save_hyperparameters(ignore=["part"])


if __name__ == "__main__":
    if CASE == "alone":
        scenario.observe(part=dict(Part(3).hparams))
    else:
        whole = Whole(width=7, part=Base(width=3) if CASE == "outside" else None)
        own = {name: value for name, value in whole.part.hparams.items() if name != "part"}
        scenario.observe(part=own, whole=dict(whole.hparams), keys=sorted(whole.part.hparams))
