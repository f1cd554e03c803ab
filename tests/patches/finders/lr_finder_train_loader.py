"""The LearningRateFinder callback uses up batches of the next epoch, which misses them and its validation. Cases:
``callback``, ``milestones`` (the subclass of Lightning's documentation, which searches again at later epochs),
``shuffle`` (a shuffled training set), ``workers`` (loaded in a worker process), ``ddp`` (two ranks on gloo)."""

from _expect import bug, fixed, whole_run


def _whole(seen):
    """True if every epoch has all batches, and ends with a complete validation."""
    epochs = "0", "1", "2", "3"
    return seen["batches"] == dict.fromkeys(epochs, 16) and seen["validated"] == dict.fromkeys(epochs, 4)


def _batches(count):
    return whole_run(lambda result: [rank["batches"]["0"] for rank in result.observations] == [count, count])


EXPECT = [
    bug("callback", stock=lambda seen: seen["batches"]["0"] < 16 and "0" not in seen["validated"], patched=_whole),
    bug("shuffle", stock=lambda seen: seen["batches"]["0"] == 10 and "0" not in seen["validated"], patched=_whole),
    fixed(
        ["workers", "milestones"],
        "first epoch is whole",
        stock=lambda seen: seen["batches"]["0"] == 10 and "0" not in seen["validated"],
        alone=True,
        on=("2.1.0", "2.3.3"),
    ),
    fixed(
        "ddp",
        "finder on two ranks uses all batches",
        stock=_batches(5),
        toggle="lr-finder-restarting-flag,lr-finder-val-loader,lr-finder-train-loader,lr-finder-applies-lr",
        on="2.4.0",
    ),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset

DDP = scenario.CASE == "ddp"


class Finder(scenario.pl.callbacks.LearningRateFinder):
    def on_fit_start(self, trainer, model):
        if scenario.CASE != "milestones":
            self.lr_find(trainer, model)

    def on_train_epoch_start(self, trainer, model):
        if scenario.CASE == "milestones" and trainer.current_epoch in (0, 2):
            self.lr_find(trainer, model)

    def lr_find(self, trainer, model):
        model.searching = True
        super().lr_find(trainer, model)
        model.searching = False


class Model(Linear):
    features, lr = 4, 1e-3

    def __init__(self):
        super().__init__()
        self.trained, self.validated = {}, {}

    def training_step(self, batch, batch_idx):
        if not self.searching:
            self.trained.setdefault(self.current_epoch, []).extend(int(v) for v in batch[0][:, 0])
        return self.layer(batch[0]).pow(2).mean() / 1e4

    def validation_step(self, batch, batch_idx):
        if not self.searching:
            self.validated[self.current_epoch] = self.validated.get(self.current_epoch, 0) + 1

    def train_dataloader(self):
        data = TensorDataset(torch.arange(128.0).reshape(32, 4))
        return DataLoader(
            data, batch_size=2, shuffle=scenario.CASE == "shuffle", num_workers=1 if scenario.CASE == "workers" else 0
        )

    def val_dataloader(self):
        return DataLoader(TensorDataset(torch.arange(32.0).reshape(8, 4)), batch_size=2)


if __name__ == "__main__":
    scenario.pl.seed_everything(7)
    model = Model()
    steps = 3 if DDP else 6
    finder = Finder(max_lr=1e-2, num_training_steps=steps, early_stop_threshold=None, update_attr=False)
    trainer = scenario.trainer(
        max_epochs=4,
        num_sanity_val_steps=0,
        strategy="ddp" if DDP else "auto",
        devices=2 if DDP else 1,
        callbacks=[finder],
    )
    trainer.fit(model)
    scenario.observe(
        batches={epoch: len(seen) // 2 for epoch, seen in model.trained.items()},
        samples=model.trained,
        validated=model.validated,
        weight=model.layer.weight,
    )
