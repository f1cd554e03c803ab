"""A precision from the command line, as `lightning run model --precision=64` passes it to the script. Cases:
``script_has_none``, ``script_agrees`` (Fabric(precision="64-true")), ``script_differs`` (an error is right),
``not_given`` (on the command line)."""

from _expect import bug, same

MESSAGE = "Your code has `Fabric(precision=None, ...)` but it conflicts with the value"

EXPECT = [
    bug("script_has_none", stock=MESSAGE, patched={"dtype": "torch.float64"}),
    same(["script_agrees", "not_given"], "other programs are unchanged"),
    same("script_differs", "conflict is refused as on stock", "but it conflicts with the value"),
]

import os

import _scenario as scenario
import torch

os.environ["LT_CLI_USED"] = "1"
if scenario.CASE != "not_given":
    os.environ["LT_PRECISION"] = "64-true"
ARGUMENTS = {"script_agrees": {"precision": "64-true"}, "script_differs": {"precision": "bf16-mixed"}}

if __name__ == "__main__":
    with scenario.observing_errors():
        fabric = scenario.fabric().Fabric(accelerator="cpu", devices=1, **ARGUMENTS.get(scenario.CASE, {}))
    layer = fabric.setup(torch.nn.Linear(1, 1))
    scenario.observe(dtype=str(next(layer.parameters()).dtype))
