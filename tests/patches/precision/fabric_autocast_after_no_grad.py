"""Issue 20644 in Fabric: a layer that runs without gradients first, and then with them, in one autocast block. Cases:
``forward`` (both in the model's forward), ``autocast`` (in a ``fabric.autocast()`` block), ``decorated`` (the same as a
decorator), and the first two with ``_by_hand``: the cache is emptied by the program."""

from _expect import bug, fixed, same

EXPECT = [
    bug("forward", stock={"body_trained": False}, like="forward_by_hand", old_torch=True),
    bug("autocast", stock={"body_trained": False}, like="autocast_by_hand", old_torch=True),
    *[
        fixed(
            case,
            "layers get their gradients",
            stock={"body_trained": False},
            patched={"body_trained": True, "torch_as_before": True},
            alone=True,
            old_torch=True,
            on=version,
        )
        for case, version in (("decorated", "2.0.0"), ("forward", "2.2.5"))
    ],
    same("forward", "nothing changes with a fixed torch", {"body_trained": True}, alone=True),
]

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric
KIND = scenario.CASE.replace("_by_hand", "")
BY_HAND = scenario.CASE.endswith("_by_hand")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 1)

    def both(self, batch):
        with torch.no_grad():
            self.body(batch)
        if BY_HAND:
            torch.clear_autocast_cache()
        return self.head(self.body(batch)).pow(2).mean()

    def forward(self, batch):
        return self.both(batch)


if __name__ == "__main__":
    fabric = Fabric(accelerator="cpu", devices=1, precision=scenario.precision("bf16-mixed"))
    torch.manual_seed(3)
    model = Model()
    before = model.body.weight.clone()
    wrapped, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    hooked = vars(torch.no_grad)["__exit__"]
    batch = torch.arange(32.0).reshape(8, 4) / 32

    @fabric.autocast()
    def decorated(batch):
        return model.both(batch)

    for _ in range(2):
        optimizer.zero_grad()
        if KIND == "forward":
            loss = wrapped(batch)
        elif KIND == "decorated":
            loss = decorated(batch)
        else:
            with fabric.autocast():
                loss = model.both(batch)
        fabric.backward(loss)
        optimizer.step()
    scenario.observe(
        body_trained=not torch.equal(before, model.body.weight),
        weights=list(model.parameters()),
        torch_as_before=hooked is vars(torch.no_grad)["__exit__"],
    )
