"""Methods that are replaced on the module that ``fabric.setup`` returned. Cases: ``forward``, ``state_dict`` (which
model and wrapper have), ``added`` (an attribute that neither has), ``device`` (an attribute of the model, and of the
wrapper a property)."""

from _expect import bug, same


def saw(expected):
    return {"seen": expected}


# The wrapper's method is still called: it converts the input, and passes additional arguments.
still_converted = saw("forward got torch.bfloat16")
passes_arguments_on = "state_dict() got an unexpected keyword argument 'destination'"

EXPECT = [
    bug("forward", stock=still_converted, patched=saw("forward got torch.float32"), since="2.1.0"),
    bug("state_dict", stock=passes_arguments_on, patched=saw("no state"), since="2.1.0"),
    same(
        "added",
        "other attributes are set as on stock",
        lambda seen: seen["set_on_model"]["added"] is True,
        alone=True,
        on="2.2.1",
    ),
    same(
        "device",
        "property of the wrapper is set on the model",
        {"seen": ["cpu", "float"]},
        alone=True,
        on=("2.1.0", "2.2.1"),
    ),
]

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        if scenario.CASE == "device":
            self.device = "unknown"

    def forward(self, x):
        return self.layer(x)


def forward(x):
    return f"forward got {x.dtype}"


def state_dict():
    return "no state"


if __name__ == "__main__":
    fabric = Fabric(accelerator="cpu", devices=1, precision="bf16-true")
    model = Model()
    wrapped = fabric.setup(model)
    if scenario.CASE == "forward":
        wrapped.forward = forward
        seen = wrapped(torch.ones(1, 2))
    elif scenario.CASE == "state_dict":
        wrapped.state_dict = state_dict
        with scenario.observing_errors():
            seen = wrapped.state_dict()
    elif scenario.CASE == "device":
        wrapped.device, wrapped.dtype = "cpu", "float"
        seen = [model.device, model.dtype]
    else:
        wrapped.added = seen = "added"
    before = {name: name in vars(model) for name in ("forward", "state_dict", "added")}
    wrapped.layer = torch.nn.Identity()
    scenario.observe(seen=seen, set_on_model=before, layer_set_on_model=isinstance(model.layer, torch.nn.Identity))
