"""The batch size finder and a module with a validation_step, but without a val_dataloader. Cases: none; ``callback``
(the BatchSizeFinder callback); ``train`` (the module has no validation_step either)."""

from _expect import bug, same

EXPECT = [
    bug(
        ["", "callback"],
        stock="`val_dataloader` must be implemented to be used with the Lightning Trainer",
        patched=lambda seen: seen["found"] == seen["trained"][-1] and seen["trained"][:3] == [2, 4, 8],
        like="train",
    ),
    same("train", "module without a validation step is unchanged", alone=True),
    same(
        ["", "callback"],
        "patch for validation loaders leaves modules without one unchanged",
        alone=True,
        program="batch_size_finder_without_val_loader",
        on="2.1.0",
    ),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader


class Model(Linear):
    features, lr = 1, 0.0

    def __init__(self):
        super().__init__()
        self.batch_size = 2
        self.trained = []

    def training_step(self, batch, batch_idx):
        self.trained.append(len(batch))
        return self.layer(batch).pow(2).mean()

    if scenario.CASE != "train":

        def validation_step(self, batch, batch_idx):
            return None

    def train_dataloader(self):
        return DataLoader(torch.ones(64, 1), batch_size=self.batch_size)


if __name__ == "__main__":
    model = Model()
    search = {"mode": "binsearch", "steps_per_trial": 1, "init_val": 2, "max_trials": 3}
    if scenario.CASE == "callback":
        finder = scenario.pl.callbacks.BatchSizeFinder(**search)
        scenario.trainer(max_epochs=1, limit_train_batches=1, callbacks=[finder]).fit(model)
    else:
        trainer = scenario.trainer(max_epochs=1, limit_train_batches=1)
        scenario.tuner(trainer).scale_batch_size(model, **search)
        trainer.fit(model)
    scenario.observe(found=model.batch_size, trained=model.trained)
