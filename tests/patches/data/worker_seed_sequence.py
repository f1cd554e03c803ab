"""Random augmentation in seeded DataLoader workers, over two epochs and for two seeds. Cases: ``fork``, and ``spawn``
with one worker and one seed, because each worker imports Lightning anew."""

from _expect import bug

EXPECT = [
    # Not compared: NumPy's numbers: 2.4.0 takes them from another sequence than 2.6.1
    bug(
        "fork",
        stock=lambda seen: seen["seed 1"]["torch"][0] == seen["seed 1"]["torch"][1],
        compare=lambda ranks: [{seed: [v["torch"], v["python"]] for seed, v in rank.items()} for rank in ranks],
    )
]

import random

import _scenario as scenario
import numpy as np
import torch
from _model import Linear
from torch.utils.data import DataLoader, Dataset


class Augmented(Dataset):
    """Each item is the random numbers that three libraries draw when it is loaded."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.rand(1).item(), np.random.rand(), random.random()


class Model(Linear):
    features, lr = 1, 0.0

    def __init__(self):
        super().__init__()
        self.epochs = []

    def on_train_epoch_start(self):
        self.epochs.append([])

    def training_step(self, batch, batch_idx):
        self.epochs[-1].append(batch)
        return self.layer(batch[0].float().reshape(-1, 1)).mean()


def loader():
    if scenario.CASE == "spawn":
        return DataLoader(Augmented(), batch_size=1, num_workers=1, multiprocessing_context="spawn")
    return DataLoader(Augmented(), batch_size=1, num_workers=2, multiprocessing_context="fork")


def by_library(epochs):
    """Return the numbers of each library and epoch, as exact strings."""
    return {
        name: [[float(batch[i]).hex() for batch in batches] for batches in epochs]
        for i, name in enumerate(("torch", "numpy", "python"))
    }


if __name__ == "__main__":
    for seed in (1,) if scenario.CASE == "spawn" else (1, 2):
        scenario.pl.seed_everything(seed, workers=True)
        model = Model()
        scenario.trainer(max_epochs=2).fit(model, loader())
        scenario.observe(**{f"seed {seed}": by_library(model.epochs)})
