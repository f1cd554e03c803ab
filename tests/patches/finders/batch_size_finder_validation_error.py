"""Validation runs out of memory in a trial of the batch size finder. Cases: none; ``train`` (training runs out of
memory at the same size); ``error`` (validation fails with another error); ``validate`` (the finder searches in
``trainer.validate``)."""

from _expect import bug, fixed, same

EXPECT = [
    bug(stock="KeyError: 'limit_eval_batches'", patched={"found": 4, "last": [4, 4, 4], "modes": [True]}, like="train"),
    same(["train", "validate"], "other searches are unchanged", alone=True),
    fixed(
        "error",
        "other error of the validation is shown",
        stock="KeyError: ",
        patched="ValueError: the step broke",
        alone=True,
    ),
]

import _scenario as scenario
import torch
from _model import Module
from torch.utils.data import DataLoader

CASE = scenario.CASE


class Model(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Dropout(0.0))
        self.batch_size = 2
        self.trained, self.modes = [], set()

    def _step(self, batch, too_large):
        if too_large and self.batch_size > 4:
            raise ValueError("the step broke") if CASE == "error" else RuntimeError("CUDA out of memory. Simulated.")
        return self.layer(batch).pow(2).mean()

    def training_step(self, batch, batch_idx):
        self.trained.append(len(batch))
        self.modes.add(self.layer.training)
        return self._step(batch, CASE == "train")

    def validation_step(self, batch, batch_idx):
        self._step(batch, CASE != "train")

    def train_dataloader(self):
        return DataLoader(torch.ones(64, 1), batch_size=self.batch_size)

    val_dataloader = train_dataloader


if __name__ == "__main__":
    model = Model()
    finder = scenario.pl.callbacks.BatchSizeFinder(steps_per_trial=1, init_val=2, max_trials=4)
    trainer = scenario.trainer(
        max_epochs=1, val_check_interval=1, num_sanity_val_steps=0, limit_train_batches=3, callbacks=[finder]
    )
    with scenario.observing_errors():
        trainer.validate(model) if CASE == "validate" else trainer.fit(model)
    scenario.observe(found=model.batch_size, last=model.trained[-3:], modes=sorted(model.modes))
