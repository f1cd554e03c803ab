"""PR 21055: which learning rate the finder suggests.

Cases: ``exponential``, ``linear`` (the finder's modes), ``few`` (too few losses for a suggestion).
"""

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

pl = scenario.pytorch()


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.lr = 1e-3
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


if __name__ == "__main__":
    pl.seed_everything(3)
    model = Model()
    trainer = scenario.trainer(max_epochs=3, accelerator="cpu")
    finder = scenario.tuner(trainer).lr_find(
        model,
        DataLoader(torch.arange(80.0).reshape(40, 2) / 80, batch_size=1),
        mode="linear" if scenario.CASE == "linear" else "exponential",
        num_training=11 if scenario.CASE == "few" else 40,
        early_stop_threshold=None,
        update_attr=False,
    )
    rates, losses = finder.results["lr"], finder.results["loss"]
    suggested = finder.suggestion()
    steepest = None
    if suggested is not None:
        slopes = torch.gradient(torch.tensor(losses[10:-1]), spacing=[torch.tensor(rates[10:-1])])[0]
        steepest = rates[10 + int(slopes.argmin())]
    scenario.observe(suggested=suggested, steepest=steepest, losses=losses)
