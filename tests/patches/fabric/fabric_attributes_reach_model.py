"""An attribute that is set on the result of fabric.setup() does not reach the model. Cases: ``known``, attributes that
the model has; ``new``, one that it does not have; ``own``, attributes that the wrapper also has."""

from _expect import bug

EXPECT = [
    bug("known", stock={"result": 1, "shown": 4}, patched={"result": 9, "shown": 4}),
    bug("new", stock=lambda seen: not seen["reached"], patched=lambda seen: seen["reached"] and seen["shown"] == 1),
    bug("own", stock={"training": [False, True]}, patched={"training": [False, False]}),
]

import _scenario as scenario
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1, bias=False)
        self.scale = 1.0
        self.register_buffer("shift", torch.zeros(1))

    def forward(self, inputs):
        return self.layer(inputs) * self.scale + self.shift


def main():
    model = Model()
    torch.nn.init.ones_(model.layer.weight)
    fabric = scenario.fabric().Fabric(accelerator="cpu", devices=1)
    wrapped = fabric.setup(model)
    if scenario.CASE == "known":
        wrapped.scale = 3.0
        wrapped.shift = torch.ones(1)
        wrapped.layer = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(wrapped.layer.weight, 2.0)
        wrapped.scale += 1
        scenario.observe(shown=int(wrapped.scale), names=sorted(wrapped.state_dict()))
    elif scenario.CASE == "new":
        wrapped.steps = 1
        scenario.observe(reached=hasattr(model, "steps"), shown=wrapped.steps)
    elif scenario.CASE == "own":
        wrapped.training = False
        scenario.observe(training=[wrapped.training, model.training])
    scenario.observe(result=int(wrapped(torch.ones(1))))


if __name__ == "__main__":
    main()
