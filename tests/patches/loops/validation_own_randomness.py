"""With a seed, the order of the training data with and without validation. Cases: "", ``generator`` (the validation
loader has a separate generator), ``shuffled`` (the validation data are shuffled), ``validate`` (trainer.validate, and
no training)."""

from _expect import bug, patched, same


def _differs_between_epochs(seen):
    epochs = {tuple(seen["validated"][begin : begin + 8]) for begin in (0, 8, 16)}
    return seen["trained"] == seen["alone"] and len(epochs) == 3


EXPECT = [
    bug(stock=lambda seen: seen["trained"] != seen["alone"], like="generator"),
    same("validate", "evaluation outside training is unchanged", alone=True),
    patched("shuffled", "shuffled validation differs between epochs", _differs_between_epochs, alone=True),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

CASE = scenario.CASE


class Model(Linear):
    features = 1

    def __init__(self):
        super().__init__()
        self.trained, self.validated = [], []

    def training_step(self, batch, batch_idx):
        self.trained.append(int(batch))
        return self.layer(batch).sum()

    def validation_step(self, batch, batch_idx):
        if not self.trainer.sanity_checking:
            self.validated.append(int(batch))


def fit(validation):
    scenario.pl.seed_everything(3)
    model = Model()
    trainer = scenario.trainer(max_epochs=3, limit_val_batches=None if validation else 0)
    trainer.fit(model, DataLoader(data, shuffle=True), validation)
    return model


if __name__ == "__main__":
    data = torch.arange(8.0)[:, None]
    generator = torch.Generator().manual_seed(0) if CASE == "generator" else None
    validation = DataLoader(data, shuffle=CASE in ("shuffled", "validate"), generator=generator)
    if CASE == "validate":
        scenario.pl.seed_everything(3)
        model = Model()
        scenario.trainer().validate(model, validation, verbose=False)
        scenario.observe(after=float(torch.rand(())))
    else:
        scenario.observe(alone=fit(None).trained)
        model = fit(validation)
    scenario.observe(trained=model.trained, validated=model.validated)
