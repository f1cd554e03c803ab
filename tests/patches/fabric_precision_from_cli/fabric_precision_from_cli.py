"""A precision from the command line, as `lightning run model --precision=64` passes it to the script. Cases:
``script_has_none``, ``script_agrees`` (Fabric(precision="64-true")), ``script_differs`` (an error is right),
``not_given`` (on the command line)."""

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
