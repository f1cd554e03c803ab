"""Hooks that remain on the model after a method call that Fabric refuses, or that fails. Cases: ``refused``,
``failing``, ``accepted`` (no such call)."""

from _expect import bug, same

EXPECT = [
    # Not compared: the refused or failing call itself is left out: the recommended usage has none
    bug(
        ["refused", "failing"],
        stock=lambda seen: "_wrap_method_with_module_call_tracker.<locals>.hook" in seen["saved"],
        like="accepted",
        compare=("hooks", "saved", "after"),
    ),
    same(["refused", "failing"], "refused or failing call ends as on stock", compare="call", on=("2.1.1", "2.6.6")),
    same(
        "accepted",
        "module without a refused call is unchanged",
        {"call": "seen", "hooks": [0, 0], "saved": "NoneType", "after": "seen"},
    ),
]

import io

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)

    def look(self, with_layer=False, fail=False):
        if with_layer:
            self.layer(torch.ones(1, 2))
        if fail:
            raise KeyError("the method's own")
        return "seen"


def attempt(function, **options):
    try:
        return function(**options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    # In mixed precision, where a method that bypasses the wrapper would miss autocast, too.
    fabric = Fabric(accelerator="cpu", devices=1, strategy="ddp", precision="bf16-mixed")
    fabric.launch()
    net = Net()
    wrapped = fabric.setup_module(net)
    look = wrapped.look
    calls = {"refused": {"with_layer": True}, "failing": {"fail": True}, "accepted": {}}
    for _ in range(3):
        scenario.observe(call=attempt(look, **calls[scenario.CASE]))
    scenario.observe(
        hooks=[len(module._forward_hooks) for module in net.modules()],
        saved=attempt(lambda: type(torch.save(net, io.BytesIO())).__name__),
        after=attempt(look),
    )
