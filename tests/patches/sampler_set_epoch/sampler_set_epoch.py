"""A user's sampler whose order depends on ``set_epoch``, in fit and in predict. Cases: ``ddp`` (two CPU ranks), ``one``
(one device; the ranks together must see the same)."""

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, Sampler, TensorDataset

LENGTH = 4


class Curriculum(Sampler):
    """A sampler with different items in each epoch."""

    def __init__(self):
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return LENGTH

    def __iter__(self):
        return iter(range(self.epoch * LENGTH, (self.epoch + 1) * LENGTH))


class Model(Linear):
    features, lr = 1, 0.0

    def __init__(self):
        super().__init__()
        self.fit, self.predict = [], []

    def on_train_epoch_start(self):
        self.fit.append([])

    def training_step(self, batch, batch_idx):
        self.fit[-1] += batch[0].flatten().tolist()
        return self.layer(batch[0]).mean()

    def predict_step(self, batch, batch_idx):
        self.predict += batch[0].flatten().tolist()


def loader():
    items = torch.arange(4.0 * LENGTH).reshape(-1, 1)
    return DataLoader(TensorDataset(items), batch_size=1, sampler=Curriculum())


if __name__ == "__main__":
    options = {"devices": 1} if scenario.CASE == "one" else {"devices": 2, "strategy": "ddp"}
    model = Model()
    trainer = scenario.trainer(max_epochs=3, **options)
    trainer.fit(model, loader())
    trainer.predict(model, loader(), return_predictions=False)
    scenario.observe(
        fit=[[int(item) for item in epoch] for epoch in model.fit], predict=[int(item) for item in model.predict]
    )
