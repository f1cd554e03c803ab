"""Gradients are accumulated over 4 of 10 batches. Cases: ``scaled`` (the program scales the last window itself),
``even`` (8 batches)."""

from _expect import bug, same

EXPECT = [
    bug(stock={"gradients": ["1", "1", "0.5"]}, patched={"gradients": ["1", "1", "1"]}, like="scaled"),
    same("even", "run whose batches are divided evenly is unchanged", alone=True),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader


class Model(Linear):
    features, bias, weight, lr = 1, False, 1.0, 0.0
    gradients = []

    def training_step(self, batch, batch_idx):
        scale = 2.0 if scenario.CASE == "scaled" and batch_idx >= 8 else 1.0
        return self.layer(batch).mean() * scale

    def on_before_optimizer_step(self, *_):
        self.gradients.append(self.layer.weight.grad.item())


if __name__ == "__main__":
    model = Model()
    data = DataLoader(torch.ones(8 if scenario.CASE == "even" else 10, 1))
    scenario.trainer(max_epochs=1, accumulate_grad_batches=4).fit(model, data)
    scenario.observe(gradients=[f"{gradient:g}" for gradient in model.gradients])
