"""A scheduler with a frequency of 3 steps, in epochs of 2 steps. Cases: ``recommended`` (frequency 1, and a scheduler
with longer steps), ``divides`` (every 2 steps)."""

from _expect import bug, same

EXPECT = [
    bug(stock={"rates": ["1"] * 8}, patched={"rates": ["1"] * 3 + ["0.5"] * 3 + ["0.25"] * 2}, like="recommended"),
    same("divides", "frequency that divides the length of an epoch is unchanged", alone=True),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader


class Model(Linear):
    features = 1
    rates = []

    def training_step(self, batch, batch_idx):
        self.rates.append(self.trainer.optimizers[0].param_groups[0]["lr"])
        return self.layer(batch).mean()

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
        every = 2 if scenario.CASE == "divides" else 3
        size, frequency = (every, 1) if scenario.CASE == "recommended" else (1, every)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=size, gamma=0.5)
        return [optimizer], [{"scheduler": scheduler, "interval": "step", "frequency": frequency}]


if __name__ == "__main__":
    model = Model()
    scenario.trainer(max_epochs=4).fit(model, DataLoader(torch.ones(2, 1)))
    scenario.observe(rates=[f"{rate:g}" for rate in model.rates])
