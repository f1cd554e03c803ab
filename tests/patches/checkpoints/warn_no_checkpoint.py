"""With optimizers that Lightning does not know of, ModelCheckpoint saves nothing. Cases: ``raw`` (the module steps its
own optimizers), ``raw-steps`` (every_n_train_steps); ``known`` (self.optimizers()), ``none`` (save_top_k=0), ``early``
(no checkpoint is due), ``saved`` (by a subclass), ``automatic``."""

from _expect import same, warns

EXPECT = [
    warns(
        ["raw", "raw-steps"],
        "missing checkpoint is warned of once",
        "ModelCheckpoint has saved nothing in 6 batches",
        on=("2.0.0", "2.6.6"),
    ),
    same(
        ["known", "none", "early", "saved", "automatic"],
        "no warning if checkpoints are saved or not due",
        on=("2.0.0", "2.6.6"),
    ),
]

import os

import _scenario as scenario
import torch

CASE = scenario.CASE
ModelCheckpoint = scenario.pl.callbacks.ModelCheckpoint


class Saved(ModelCheckpoint):
    def on_train_end(self, trainer, module):
        trainer.save_checkpoint(os.path.join(self.dirpath, "mine.ckpt"))


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = CASE == "automatic"
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1)

    def configure_optimizers(self):
        return self.optimizer

    def training_step(self, batch, batch_idx):
        loss = self(batch).sum()
        if not self.automatic_optimization:
            optimizer = self.optimizers() if CASE == "known" else self.optimizer
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        return loss


if __name__ == "__main__":
    options = {"raw-steps": {"every_n_train_steps": 2}, "none": {"save_top_k": 0}, "early": {"every_n_epochs": 5}}
    directory = "checkpoints"
    kind = Saved if CASE == "saved" else ModelCheckpoint
    trainer = scenario.trainer(
        accelerator="cpu",
        max_epochs=2,
        limit_train_batches=3,
        limit_val_batches=0,
        callbacks=[kind(dirpath=directory, **options.get(CASE, {}))],
    )
    with scenario.observing_warnings():
        trainer.fit(Model())
    scenario.observe(files=sorted(os.listdir(directory)) if os.path.exists(directory) else [], step=trainer.global_step)
