"""A step under double precision raises, the program catches the error and continues. Cases: ``trainer``, ``fabric``,
``user`` (the program sets the default dtype to bfloat16), ``well`` (no error), ``own`` (PR 18068: no error, and the
program sets the default dtype to float64)."""

from _expect import bug, fixed, same

DOUBLE = {"default": "torch.float64"}
SINGLE = {"error": "diverged", "default": "torch.float32", "made": "torch.float32"}
OWN = [{"error": None, "default": f"torch.{dtype}", "made": f"torch.{dtype}"} for dtype in ("float32", "float64")]

EXPECT = [
    *[bug(case, stock=DOUBLE, patched=SINGLE) for case in ("trainer", "fabric")],
    bug("own", stock=OWN[0], patched=OWN[1]),
    fixed("user", "default dtype of the user is restored", stock={"default": "torch.float64"}, on=("2.0.0", "2.0.9")),
    same("well", "step without an error is unchanged", on="2.0.0"),
]

import _scenario as scenario
import torch


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        if scenario.CASE not in ("well", "own"):
            raise ValueError("diverged")
        return super().training_step(batch, batch_idx)


class Failing(torch.nn.Linear):
    def forward(self, x):
        raise ValueError("diverged")


if __name__ == "__main__":
    if scenario.CASE == "user":
        torch.set_default_dtype(torch.bfloat16)
    if scenario.CASE == "own":
        torch.set_default_dtype(torch.float64)
    error = None
    try:
        if scenario.CASE in ("fabric", "user"):
            fabric = scenario.fabric().Fabric(accelerator="cpu", devices=1, precision=scenario.precision("64-true"))
            fabric.setup(Failing(1, 1))(torch.ones(1, 1))
        else:
            scenario.trainer(max_steps=1, precision=scenario.precision("64-true"), limit_val_batches=0).fit(Model())
    except ValueError as caught:
        error = str(caught)
    scenario.observe(error=error, default=torch.get_default_dtype(), made=torch.nn.Linear(1, 1).weight.dtype)
