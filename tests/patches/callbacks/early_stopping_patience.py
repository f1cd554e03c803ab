"""A resumed EarlyStopping has the patience of the checkpoint instead of the program's. Cases: ``longer`` (8 instead of
3), ``set`` (the program sets it when training starts), ``same``, ``fresh`` (not resumed)."""

from _expect import bug, same

EXPECT = [
    bug("longer", stock={"epochs": 4, "patience": 3}, like="set", compare=("epochs", "patience")),
    same(["set", "same", "fresh"], "other programs are unchanged", alone=True),
]

import os

import _scenario as scenario
import torch

callbacks = scenario.pytorch("callbacks")
CASE = scenario.CASE
OUT = "checkpoints"


class Setting(scenario.pl.Callback):
    def on_train_start(self, trainer, pl_module):
        trainer.early_stopping_callback.patience = 8


class Model(scenario.BoringModel):
    def validation_step(self, batch, batch_idx):
        self.log("metric", torch.tensor(1.0 + self.current_epoch))


def trainer(patience, *more):
    return scenario.trainer(
        max_epochs=20,
        limit_train_batches=1,
        limit_val_batches=1,
        num_sanity_val_steps=0,
        callbacks=[
            callbacks.EarlyStopping("metric", patience=patience),
            callbacks.ModelCheckpoint(OUT, "{epoch}", save_top_k=-1),
            *more,
        ],
    )


if __name__ == "__main__":
    trainer(3).fit(Model())
    path = None if CASE == "fresh" else os.path.join(OUT, "epoch=1.ckpt")
    again = trainer(3 if CASE == "same" else 8, *([Setting()] if CASE == "set" else []))
    with scenario.observing_warnings():
        again.fit(Model(), ckpt_path=path)
    scenario.observe(epochs=again.current_epoch, patience=again.early_stopping_callback.patience)
