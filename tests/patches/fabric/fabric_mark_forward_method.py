"""A marked method runs through DDP, on two CPU ranks with different data."""

from _expect import bug, fixed, whole_run

ABSENT = "has no attribute 'mark_forward_method'"


def _in_step(result):
    first, second = result.observations
    refusals = ["ValueError", "AttributeError", "AttributeError", "TypeError", None]
    return first["weights"] == second["weights"] and first["refusals"] == refusals


EXPECT = [
    bug(stock=ABSENT, patched=whole_run(_in_step)),
    fixed("", "works with all patches", stock=ABSENT, toggle="default", on="2.2.5"),
]

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)

    def loss(self, x, power=2):
        return self(x).pow(power).mean()

    def size(self):
        return sum(p.numel() for p in self.parameters())


def refusal(method):
    try:
        wrapped.mark_forward_method(method)
    except Exception as error:
        return type(error).__name__
    return None


if __name__ == "__main__":
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    torch.manual_seed(3)
    net = Net()
    wrapped, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))
    batch = torch.arange(6.0).reshape(3, 2) + fabric.global_rank
    with scenario.observing_errors():
        wrapped.mark_forward_method(net.loss)
        wrapped.mark_forward_method("loss")
    for power in (2, 4):
        optimizer.zero_grad()
        fabric.backward(wrapped.loss(batch, power=power))
        optimizer.step()
    scenario.observe(
        weights=list(net.parameters()),
        forward=wrapped(batch),
        size=wrapped.size(),
        refusals=[refusal(method) for method in ("forward", "layer", "nothing", 3, net.loss)],
    )
