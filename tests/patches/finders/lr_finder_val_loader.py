"""Validation stays limited to the learning rate finder's number of batches."""

from _expect import bug

EXPECT = [bug(stock={"validated": [3, 3]}, patched={"validated": [8, 8]})]

import _scenario as scenario
import torch
from _model import Linear, mean_square
from torch.utils.data import DataLoader, TensorDataset


class Model(Linear):
    loss = staticmethod(mean_square)
    features, lr = 4, 1e-3
    validated = []

    def on_validation_epoch_start(self):
        self.validated.append(0)

    def validation_step(self, batch, batch_idx):
        self.validated[-1] += 1

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.arange(64.0).reshape(16, 4) / 64), batch_size=2)

    val_dataloader = train_dataloader

    def on_fit_start(self):  # comes after the callbacks' on_fit_start, where the finder runs
        self.validated = []


if __name__ == "__main__":
    scenario.pl.seed_everything(7)
    model = Model()
    # The trial must reach a validation, so that the limited loader is created: 8 batches are an epoch.
    callbacks = scenario.pytorch("callbacks")
    finder = callbacks.LearningRateFinder(max_lr=1e-2, num_training_steps=3, update_attr=False)
    trainer = scenario.trainer(max_epochs=2, num_sanity_val_steps=0, callbacks=[finder])
    trainer.fit(model)
    scenario.observe(validated=model.validated, weight=model.layer.weight)
