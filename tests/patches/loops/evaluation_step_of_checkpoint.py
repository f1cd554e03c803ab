"""Epoch and step in the test of a checkpoint that was saved after the first of three epochs. Cases: ``fitted`` (by the
Trainer that trained), ``new`` (by another one), ``validate`` and ``predict`` (as ``fitted``, with these methods),
``file`` (the values in the checkpoint), ``weights`` (without a ckpt_path), ``goes-on`` (the Trainer continues to train,
and observes that)."""

from _expect import bug, fixed, patched, same

EXPECT = [
    bug(
        ["fitted", "new"],
        stock=lambda seen: (seen["epoch"], seen["step"]) != (0, 2),
        like="file",
        compare=("epoch", "step"),
    ),
    same("weights", "evaluation without a checkpoint is unchanged", alone=True),
    *[
        fixed(
            case,
            "evaluation has the epoch and step of the checkpoint",
            stock={"epoch": epoch, "step": step, "logged": [step], "epoch_after": epoch, "step_after": step},
            patched={"epoch": 0, "step": 2, "logged": [2], "epoch_after": epoch, "step_after": step},
            alone=True,
            on=("2.0.0", "2.6.6"),
        )
        for case, epoch, step in (("fitted", 3, 6), ("new", 0, 0))
    ],
    patched(
        ["validate", "predict"],
        "validate and predict have the step of the checkpoint",
        {"epoch": 0, "step": 2},
        alone=True,
    ),
    same(
        "goes-on",
        "training continues unchanged",
        {"epoch_after": 4, "step_after": 8},
        compare=("epoch_after", "step_after"),
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
]

import csv
from pathlib import Path

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

CASE = scenario.CASE


class Model(Linear):
    features = 1

    def look(self, *_):
        scenario.observe(epoch=self.trainer.current_epoch, step=self.trainer.global_step)

    on_test_start = on_validation_start = on_predict_start = look

    def test_step(self, batch, batch_idx):
        self.log("tested", 1.0)

    def validation_step(self, batch, batch_idx):
        self.log("tested", 1.0)

    def predict_step(self, batch, batch_idx):
        pass


def new_trainer():
    save = scenario.pl.callbacks.ModelCheckpoint(dirpath=".", filename="{epoch}", save_top_k=-1)
    logger = scenario.pl.loggers.CSVLogger(".", name="logs")
    return scenario.trainer(
        max_epochs=3,
        limit_val_batches=None if CASE == "validate" else 0,
        logger=logger,
        callbacks=[save],
        num_sanity_val_steps=0,
    )


if __name__ == "__main__":
    model, loader, trainer = Model(), DataLoader(torch.ones(2, 1)), new_trainer()
    trainer.fit(model, loader)
    if CASE == "new":
        trainer = new_trainer()
    path = None if CASE == "weights" else "epoch=0.ckpt"
    if CASE == "file":
        saved = torch.load(path, weights_only=False)
        scenario.observe(epoch=saved["epoch"], step=saved["global_step"])
    elif CASE == "predict":
        trainer.predict(model, loader, ckpt_path=path)
    else:
        getattr(trainer, "validate" if CASE == "validate" else "test")(model, loader, ckpt_path=path, verbose=False)
        with open(Path(trainer.logger.log_dir, "metrics.csv"), newline="") as file:
            scenario.observe(logged=[int(row["step"]) for row in csv.DictReader(file) if row["tested"]])
    if CASE == "goes-on":
        trainer.fit_loop.max_epochs = 4
        trainer.fit(model, loader)
    scenario.observe(epoch_after=trainer.current_epoch, step_after=trainer.global_step)
