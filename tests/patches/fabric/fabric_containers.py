"""Containers in batches, outputs and checkpoints of Fabric. The cases name a place (``batch``, ``output``, ``input`` in
mixed precision, ``save``) and a container (``frozen``, ``attribute``, ``range``, ``memory``, ``plain``, which is the
recommended one)."""

from _expect import bug, fixed, same

EXPECT = [
    bug("fabric batch frozen", stock="A frozen dataclass was passed", like="fabric batch plain"),
    bug("fabric batch range", stock="integer", like="fabric batch list", compare="x"),
    bug("fabric save frozen", stock="A frozen dataclass was passed", like="fabric save plain", since="2.0.0"),
    bug("fabric output frozen", stock="A frozen dataclass was passed", like="fabric output plain", since="2.3.0"),
    bug("fabric output attribute", stock="Only Tensors created explicitly", like="fabric output plain", since="2.3.0"),
    bug("fabric input frozen", stock="A frozen dataclass was passed", like="fabric input plain", since="2.3.0"),
    fixed("fabric batch memory", "a sequence without tensors is kept", patched={"kind": "memoryview"}, on="2.6.6"),
    same("fabric batch failing", "an error of a batch's own method stays", "a batch that cannot move"),
]

import dataclasses

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric
WORDS = scenario.CASE.split()


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: torch.Tensor


@dataclasses.dataclass
class Plain:
    x: torch.Tensor


@dataclasses.dataclass
class Attribute:
    x: torch.Tensor

    def __post_init__(self):
        self.squared = self.x**2


class Failing:
    def to(self, device):
        raise ValueError("a batch that cannot move")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, item):
        x = self.layer(item.x if isinstance(item, (Frozen, Plain)) else item)
        return KINDS.get(WORDS[2], Plain)(x) if WORDS[1] == "output" else x


KINDS = {"frozen": Frozen, "plain": Plain, "attribute": Attribute}

if __name__ == "__main__":
    torch.manual_seed(0)
    mixed = {"precision": "bf16-mixed"} if WORDS[1] == "input" else {}
    fabric = Fabric(accelerator="cpu", devices=1, **mixed)
    x, kind = torch.ones(1, 1), WORDS[2]
    others = {"range": range(3), "list": [0, 1, 2], "memory": memoryview(b"abc"), "failing": [Failing()]}
    item = KINDS[kind](x) if kind in KINDS else {"x": x, "ids": others[kind]}
    with scenario.observing_errors():
        if WORDS[1] == "batch":
            loader = torch.utils.data.DataLoader([item], batch_size=None, collate_fn=lambda item: item)
            batch = next(iter(fabric.setup_dataloaders(loader)))
            seen = batch.x if kind in KINDS else batch["x"]
            scenario.observe(kind=None if kind in KINDS else type(batch["ids"]).__name__)
        elif WORDS[1] == "save":
            fabric.save("a.ckpt", {"item": item})
            seen = torch.load("a.ckpt", weights_only=False)["item"].x
        else:
            out = fabric.setup_module(Model())(x if WORDS[1] == "output" else item)
            seen = out if WORDS[1] == "input" else out.x
            fabric.backward(seen.sum())
    scenario.observe(x=seen)
