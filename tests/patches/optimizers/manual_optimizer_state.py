"""The state of self.optimizers() after a checkpoint was loaded. Cases: ``resume``, ``fresh`` (nothing was loaded),
``several`` (two optimizers)."""

from _expect import bug, fixed, same_calls

EXPECT = [
    bug(
        "resume",
        stock=lambda seen: seen["used"][-1] == [(0.1).hex()],
        patched=lambda seen: seen["used"][-1] == [(0.05).hex()],
    ),
    fixed(
        "several",
        "changed learning rate is used by several optimizers",
        stock=lambda seen: seen["used"][-1][0] == (0.1).hex(),
        alone=True,
        on="2.0.0",
    ),
    same_calls("wrapping_optimizer", "wrapping optimizer steps", on="2.0.0"),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

SEVERAL = scenario.CASE == "several"


class Model(scenario.pl.LightningModule):
    def __init__(self, lr=None):
        super().__init__()
        self.automatic_optimization = False
        self.layer = torch.nn.Linear(1, 1)
        self.other = torch.nn.Linear(1, 1)
        self.lr = lr
        self.used, self.remembered = [], []

    def training_step(self, batch, batch_idx):
        found = self.optimizers()
        for optimizer in found if SEVERAL else [found]:
            if self.lr is not None:
                optimizer.param_groups[0]["lr"] = self.lr
            optimizer.zero_grad()
            self.manual_backward(self.other(self.layer(batch)).pow(2).mean())
            optimizer.step()
            self.remembered.append(len(optimizer.state))
        self.used.append([optimizer.param_groups[0]["lr"] for optimizer in self.trainer.optimizers])

    def configure_optimizers(self):
        first = torch.optim.SGD(self.layer.parameters(), lr=0.1, momentum=0.5)
        return [first, torch.optim.SGD(self.other.parameters(), lr=0.2)] if SEVERAL else first


def fit(epochs, lr=None, ckpt_path=None):
    scenario.pl.seed_everything(3)
    model = Model(lr)
    trainer = scenario.trainer(max_epochs=epochs)
    trainer.fit(model, DataLoader(torch.arange(4.0).reshape(4, 1) / 4, batch_size=1), ckpt_path=ckpt_path)
    return model, trainer


if __name__ == "__main__":
    if scenario.CASE == "fresh":
        model, _ = fit(2, 0.05)
    else:
        path = "saved.ckpt"
        fit(1)[1].save_checkpoint(path)
        model, _ = fit(2, 0.05, path)
    scenario.observe(used=model.used, remembered=model.remembered, weight=model.layer.weight)
