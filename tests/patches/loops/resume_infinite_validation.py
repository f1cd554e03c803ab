"""A resume fails with "cannot convert float infinity to integer" if the validation set has no length. Cases:
``stream``, ``sized`` (a validation set that has a length)."""

from _expect import bug

EXPECT = [bug("stream", stock="OverflowError: cannot convert float infinity to integer")]

import os

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.ones(3, 1))


class Model(Linear):
    features = 1

    def __init__(self):
        super().__init__()
        self.events = []

    def training_step(self, batch, batch_idx):
        self.events.append(f"train {self.current_epoch} {batch_idx}")
        return self.layer(batch).pow(2).mean()

    def validation_step(self, batch, batch_idx):
        self.events.append(f"validate {self.current_epoch} {batch_idx}")


def fit(epochs, ckpt_path=None):
    model = Model()
    checkpoint = scenario.pl.callbacks.ModelCheckpoint(
        dirpath=os.getcwd(), filename="{step}", save_top_k=-1, every_n_train_steps=1
    )
    trainer = scenario.trainer(max_epochs=epochs, num_sanity_val_steps=0, callbacks=[checkpoint])
    train = DataLoader(torch.ones(4, 1), batch_size=1)
    validation = DataLoader(Stream() if scenario.CASE == "stream" else torch.ones(3, 1), batch_size=1)
    with scenario.observing_errors():
        trainer.fit(model, train, validation, ckpt_path=ckpt_path)
    return model, checkpoint


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    _, checkpoint = fit(1)
    scenario.pl.seed_everything(4)
    model, _ = fit(2, os.path.join(checkpoint.dirpath, "step=4.ckpt"))
    scenario.observe(events=model.events, weight=model.layer.weight)
