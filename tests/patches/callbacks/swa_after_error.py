"""An error in the epoch of StochasticWeightAveraging that updates batch norm, and a second fit without the callback.

Cases: ``early`` for an error in an earlier epoch, ``by-hand`` for a program that resets the Trainer itself, ``none``
for a first fit without an error."""

from _expect import bug, same

RIGHT = {"momentum": 0.1, "max_epochs": 3, "accumulation": 1, "trains": True}
EXPECT = [
    bug(stock={"momentum": None, "max_epochs": 4, "accumulation": 5}, patched=RIGHT, like="none"),
    same(
        "early", "an error in an earlier epoch", {"momentum": 0.1, "max_epochs": 4, "accumulation": 1, "trains": True}
    ),
    same("by-hand", "a program that resets what the callback has changed", RIGHT),
]

import contextlib

import _scenario as scenario
import torch

CASE = scenario.CASE


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(32)
        self.fails_at = {"early": 5, "none": None}.get(CASE, 14)
        self.steps = 0

    def forward(self, x):
        return super().forward(self.norm(x))

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.randn(16, 32), batch_size=4)

    def training_step(self, batch, batch_idx):
        self.steps += 1
        if self.steps == self.fails_at:
            raise ValueError("the step fails")
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    model = Model()
    average = scenario.pytorch("callbacks").StochasticWeightAveraging(0.01, 1, annealing_epochs=1)
    trainer = scenario.trainer(max_epochs=3, limit_val_batches=0, num_sanity_val_steps=0, callbacks=[average])
    with contextlib.suppress(ValueError):
        trainer.fit(model)
    if CASE == "by-hand":
        trainer.fit_loop._skip_backward = False
        trainer.fit_loop.max_epochs = 3
        trainer.accumulate_grad_batches = 1
        average.reset_momenta()
    seen = (model.norm.momentum, trainer.fit_loop.max_epochs, trainer.accumulate_grad_batches)
    trainer.callbacks = []
    trainer.fit_loop.max_epochs = 6
    before = model.layer.weight.clone()
    trainer.fit(model)
    scenario.observe(momentum=seen[0], max_epochs=seen[1], accumulation=seen[2])
    scenario.observe(trains=not torch.equal(before, model.layer.weight))
