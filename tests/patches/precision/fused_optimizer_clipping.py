"""Gradient clipping, a fused optimizer and precision="bf16-mixed". Cases: ``fused``, ``value`` (clipped by value),
``by_hand`` (in configure_gradient_clipping, without gradient_clip_val), ``value_by_hand``, ``manual``
(self.clip_gradients in manual optimization)."""

from _expect import bug, fixed, same

MESSAGE = "does not allow for gradient clipping because it performs unscaling of gradients internally"

EXPECT = [
    *[
        bug(case, stock=MESSAGE, like=recommended, needs=("torch.optim:SGD fused",))
        for case, recommended in (("fused", "by_hand"), ("value", "value_by_hand"))
    ],
    fixed("manual", "gradients are clipped in manual optimization", stock=MESSAGE, patched={}, alone=True),
    same(["by_hand", "value_by_hand"], "manual clipping is unchanged"),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

BY_VALUE = scenario.CASE.startswith("value")


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = scenario.CASE != "manual"
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).pow(2).mean()
        if scenario.CASE == "manual":
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            self.clip_gradients(optimizer, gradient_clip_val=0.5, gradient_clip_algorithm="norm")
            optimizer.step()
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, fused=True)


class ByHand(Model):
    def configure_gradient_clipping(self, optimizer, gradient_clip_val=None, gradient_clip_algorithm=None):
        if BY_VALUE:
            torch.nn.utils.clip_grad_value_(self.parameters(), 0.5)
        else:
            torch.nn.utils.clip_grad_norm_(self.parameters(), 0.5)


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    by_hand = scenario.CASE.endswith("by_hand")
    model = ByHand() if by_hand else Model()
    options = {"max_epochs": 2, "accelerator": "cpu", "precision": scenario.precision("bf16-mixed")}
    if scenario.CASE in ("fused", "value"):
        options.update(gradient_clip_val=0.5, gradient_clip_algorithm="value" if BY_VALUE else "norm")
    trainer = scenario.trainer(**options)
    with scenario.observing_errors():
        trainer.fit(model, DataLoader(torch.arange(32.0).reshape(8, 4), batch_size=2))
    scenario.observe(weight=model.layer.weight, bias=model.layer.bias)
