"""Validation stays limited to the batch size finder's ``steps_per_trial`` batches. Cases: ``callback``; ``tuner`` (the
search is over, and the script looks at its loaders)."""

from _expect import bug

EXPECT = [
    bug("callback", stock={"validated": [[2, 2]] * 2}, patched={"validated": [[8] * 8] * 2}),
    bug("tuner", stock={"batch_sizes": [8, 2], "limit": [2]}, patched={"batch_sizes": [8, 8], "limit": [8]}),
]

import _scenario as scenario
import torch
from _model import Linear, mean_square
from torch.utils.data import DataLoader, TensorDataset


class Model(Linear):
    loss = staticmethod(mean_square)
    features, lr = 4, 1e-3

    def __init__(self):
        super().__init__()
        self.batch_size = 2
        self.validated = []

    def on_validation_epoch_start(self):
        self.validated.append([])

    def validation_step(self, batch, batch_idx):
        self.validated[-1].append(len(batch[0]))

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.arange(256.0).reshape(64, 4) / 256), batch_size=self.batch_size)

    val_dataloader = train_dataloader

    def on_fit_start(self):  # comes after the callbacks' on_fit_start, where the finder runs
        self.validated = []


if __name__ == "__main__":
    scenario.pl.seed_everything(7)
    model = Model()
    search = {"steps_per_trial": 2, "max_trials": 2}
    options = {"max_epochs": 2, "num_sanity_val_steps": 0, "accelerator": "cpu"}
    if scenario.CASE == "tuner":
        trainer = scenario.trainer(**options)
        scenario.tuner(trainer).scale_batch_size(model, **search)
        loaders = trainer.train_dataloader, trainer.val_dataloaders
        scenario.observe(batch_sizes=[loader.batch_size for loader in loaders], limit=trainer.num_val_batches)
    else:
        finder = scenario.pl.callbacks.BatchSizeFinder(**search)
        trainer = scenario.trainer(callbacks=[finder], **options)
        trainer.fit(model)
        scenario.observe(batch_size=model.batch_size, validated=model.validated, weight=model.layer.weight)
