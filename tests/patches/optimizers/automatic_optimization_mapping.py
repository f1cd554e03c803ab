"""Automatic optimization refuses a mapping that is not a dict. Cases: none, ``dict``, ``lossless`` (a mapping without a
loss)."""

from _expect import bug, fixed, patched, same

EXPECT = [
    bug(
        stock="In automatic optimization, `training_step` must return a Tensor",
        patched={"seen": [[["loss", "width"], 3, False]] * 2},
    ),
    fixed("", "mapping trains like a dict", stock="In automatic optimization", like="dict", alone=True),
    same("dict", "dict trains as on stock", alone=True),
    patched(
        "lossless", "mapping without a loss is refused like a dict", "the 'loss' key needs to be present", alone=True
    ),
]

from collections import UserDict

import _scenario as scenario
import torch


class Model(scenario.BoringModel):
    seen = []

    def training_step(self, batch, batch_idx):
        output = {"loss": self.layer(torch.ones(1, 32)).sum(), "width": 3}
        if scenario.CASE == "lossless":
            del output["loss"]
        return output if scenario.CASE == "dict" else UserDict(output)

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.seen.append([sorted(outputs), outputs["width"], outputs["loss"].requires_grad])


if __name__ == "__main__":
    scenario.pl.seed_everything(1)
    model = Model()
    with scenario.observing_errors():
        scenario.trainer(max_steps=2, limit_val_batches=0).fit(model)
    scenario.observe(seen=model.seen, bias=model.layer.bias)
