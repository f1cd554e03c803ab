"""The mean of logged values in bfloat16. Cases: ``tensor`` (a bfloat16 tensor is logged), ``default`` (bfloat16 is
torch's default, and integers are logged)."""

from _expect import bug

EXPECT = [
    bug(
        "default",
        stock=lambda seen: seen["metrics"]["mean"] == (0.5).hex(),
        patched=lambda seen: seen["metrics"]["mean"] == (1.0).hex(),
    )
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader


class Model(Linear):
    features = 1

    def training_step(self, batch, batch_idx):
        for _ in range(128):
            self.log("mean", torch.ones((), dtype=torch.bfloat16), on_epoch=True, batch_size=1)
            self.log("sum", torch.ones((), dtype=torch.bfloat16), on_step=False, on_epoch=True, reduce_fx="sum")
        self.log("max", torch.tensor(257.0), on_step=False, on_epoch=True, reduce_fx="max", batch_size=1)
        self.log("step", torch.tensor(0.5, dtype=torch.bfloat16), batch_size=1)
        if scenario.CASE == "default":
            self.log("integer", torch.tensor(1001), on_epoch=True, batch_size=1)
        return self.layer(batch).mean()


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    if scenario.CASE == "default":
        torch.set_default_dtype(torch.bfloat16)
    trainer = scenario.trainer(max_epochs=1)
    trainer.fit(Model(), DataLoader(torch.ones(4, 1), batch_size=1))
    metrics = {name: float(value) for name, value in sorted(trainer.callback_metrics.items())}
    kinds = {name: str(value.dtype) for name, value in trainer.callback_metrics.items()}
    scenario.observe(metrics=metrics, kinds=kinds)
