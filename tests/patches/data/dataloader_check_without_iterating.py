"""A DataLoader is iterated before a run, only to check that this is possible. Cases: ``fit``, ``validate``, ``invalid``
(the object is not iterable)."""

from _expect import bug, patched


def _started(train, validation):
    return {"train": train, "validation": validation}


EXPECT = [
    bug("fit", stock=_started(3, 3)),
    bug("validate", stock=_started(0, 2)),
    patched(
        "invalid", "object that is not iterable is refused", "TypeError: An invalid dataloader was passed", alone=True
    ),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader


class Counting(DataLoader):
    iterations = 0

    def __iter__(self):
        self.iterations += 1
        return super().__iter__()


class Model(Linear):
    features, lr = 1, 1e-3
    trained = []

    def training_step(self, batch, batch_idx):
        self.trained.append(int(batch[0]))
        return self.layer(batch).pow(2).mean()

    def validation_step(self, batch, batch_idx):
        self.layer(batch)


def data(shuffle):
    return Counting(torch.arange(8.0).reshape(8, 1), batch_size=1, shuffle=shuffle)


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model, train, validation = Model(), data(True), data(False)
    trainer = scenario.trainer(max_epochs=2, num_sanity_val_steps=0)
    with scenario.observing_errors():
        if scenario.CASE == "validate":
            trainer.validate(model, validation, verbose=False)
        else:
            trainer.fit(model, 1 if scenario.CASE == "invalid" else train, validation)
    scenario.observe(train=train.iterations, validation=validation.iterations, trained=model.trained)
