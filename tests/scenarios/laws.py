"""Pairs of programs that should train alike; see `tests/differential/test_laws.py`.

Cases: ``accumulated`` and ``large`` (two batches of two rows; one of four), ``ranks`` and ``whole`` (two ranks with
half of the rows each; one with all, since Lightning shuffles the rows of ranks), ``tested`` and ``tested-anew`` (by the
Trainer of the fit; by another, from its checkpoint), ``validated`` and ``bare`` (with and without validation and
logging), ``reused`` and ``new`` (callbacks of another run; new ones).
"""

import os

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

pl = scenario.pytorch()
callbacks = scenario.pytorch("callbacks")
CASE = scenario.CASE
OUT = os.environ.get("SCENARIO_OUT", ".")
ROWS = torch.randn(16, 3, generator=torch.Generator().manual_seed(1))


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    def loss(self, batch):
        return (self.layers(batch) - 1).pow(2).mean()

    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        if CASE == "validated":
            self.log("loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val", self.loss(batch))

    def test_step(self, batch, batch_idx):
        self.log("test", self.loss(batch))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.05)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def loader(size):
    return DataLoader(ROWS, batch_size=size)


def trainer(**options):
    return scenario.trainer(**{"accelerator": "cpu", "devices": 1, "max_epochs": 3, **options})


def observe(model, **facts):
    weights = torch.cat([one.detach().flatten() for one in model.parameters()])
    scenario.observe(weights=[round(value, 5) for value in weights.tolist()], **facts)


def fit(size, with_validation=False, **options):
    model, fitting = Model(), trainer(**options)
    fitting.fit(model, loader(size), loader(8) if with_validation else None)
    return model, fitting


def main():
    if CASE.startswith("tested"):
        path = os.path.join(OUT, "tested.ckpt")
        model, fitting = fit(4)
        fitting.save_checkpoint(path)
        anew = CASE == "tested-anew"
        model, testing = (Model(), trainer()) if anew else (model, fitting)
        (values,) = testing.test(model, loader(8), ckpt_path=path if anew else None)
        return observe(model, test=round(values["test"], 6))
    if CASE in ("reused", "new"):
        used = [callbacks.GradientAccumulationScheduler({1: 2}), callbacks.LearningRateMonitor()]
        options = {"logger": scenario.pytorch("loggers").CSVLogger(OUT, CASE), "log_every_n_steps": 1}
        if CASE == "reused":
            fit(2, callbacks=used, **options)
        return observe(fit(2, callbacks=used, **options)[0])
    if CASE == "ranks":
        return observe(fit(8, devices=2, strategy="ddp")[0])
    if CASE == "whole":
        return observe(fit(16)[0])
    if CASE == "accumulated":
        return observe(fit(2, accumulate_grad_batches=2)[0])
    if CASE == "validated":
        logger = scenario.pytorch("loggers").CSVLogger(OUT, "validated")
        return observe(fit(4, True, logger=logger, log_every_n_steps=1, val_check_interval=2)[0])
    return observe(fit(4)[0])


if __name__ == "__main__":
    main()
