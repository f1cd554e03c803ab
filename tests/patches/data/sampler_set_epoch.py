"""A user's sampler whose order depends on ``set_epoch``, in fit and in predict. Cases: ``ddp`` (two CPU ranks), ``one``
(one device; the ranks together must see the same)."""

from _expect import bug, same, whole_run

EPOCHS = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
AFTER_THEM = [12, 13, 14, 15]


def _drawn(*items):
    """Return a check that the ranks together drew these items."""
    return whole_run(
        lambda result: sorted(item for rank in result.observations for item in rank["seen"]) == sorted(items)
    )


def _in_one_set(observations):
    """Return the sorted items of all ranks, since the wrapper shuffles those of the sampler."""
    return {
        "fit": [sorted(sum(epoch, [])) for epoch in zip(*(rank["fit"] for rank in observations))],
        "predict": sorted(sum((rank["predict"] for rank in observations), [])),
    }


def _stuck(result):
    """True if every epoch of fit has the same items, or predict has those of epoch 0."""
    if len(result.observations) < 2:
        return False
    seen = _in_one_set(result.observations)
    return bool(seen["fit"][0] == seen["fit"][1] or seen["predict"] == seen["fit"][0])


def _goes_on(result):
    return bool(_in_one_set(result.observations) == {"fit": EPOCHS, "predict": AFTER_THEM})


EXPECT = [
    bug("ddp", stock=whole_run(_stuck), patched=whole_run(_goes_on), like="one", compare=_in_one_set),
    same(
        "told",
        "scripts call of set epoch is kept",
        _drawn(*range(4), *range(8, 12), *range(16, 20)),
        alone=True,
        program="sampler_told_by_hand",
        on=("2.2.5", "2.6.0"),
    ),
    same(
        "without",
        "sampler without set epoch is unchanged",
        _drawn(*3 * list(range(4))),
        alone=True,
        program="sampler_told_by_hand",
        on=("2.2.5", "2.6.0"),
    ),
]

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
