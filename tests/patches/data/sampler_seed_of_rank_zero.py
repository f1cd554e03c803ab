"""A shuffled DataLoader on two CPU ranks with different seeds. Cases: ``seeds``, ``one_seed``, ``validation`` (a
validation loader that shuffles), ``override`` (the strategy has its own broadcast), ``validation,
unlike`` (rank one doesn't shuffle)."""

from _expect import bug, fixed, same, whole_run

ALL_ITEMS = list(range(16))


def _missing(result):
    """The items that no rank has seen, in each epoch."""
    epochs = zip(*(rank["epochs"] for rank in result.observations))
    return [sorted(set(ALL_ITEMS) - set(sum(epoch, []))) for epoch in epochs]


SOME_MISSING = whole_run(lambda result: any(_missing(result)))
ALL_SEEN = whole_run(lambda result: _missing(result) == [[], []])

EXPECT = [
    bug("seeds", stock=SOME_MISSING, patched=ALL_SEEN, like="one_seed", since="2.0.3"),
    fixed("seeds", "fixed with distributed-sampler-without-seed below 2.0.3", patched=ALL_SEEN, on=("1.8.6", "2.0.2")),
    fixed("validation", "validation sees all items", patched=ALL_SEEN, on="2.6.6"),
    same("validation, unlike", "only rank zero shuffles", on="2.6.6"),
    same("override", "strategy with another broadcast is unchanged", SOME_MISSING, on=("2.1.0", "2.6.6")),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset

ITEMS = TensorDataset(torch.arange(16.0).reshape(-1, 1))


class Model(Linear):
    features, lr = 1, 0.01
    epochs = []

    def on_train_epoch_start(self):
        self.epochs.append([])

    def training_step(self, batch, batch_idx):
        if "validation" not in scenario.CASE:
            self.epochs[-1] += [int(item) for item in batch[0].flatten()]
        return self.layer(batch[0]).mean()

    def validation_step(self, batch, batch_idx):
        self.epochs[-1] += [int(item) for item in batch[0].flatten()]


class Strategy(scenario.pytorch("strategies").DDPStrategy):
    def broadcast(self, obj, src=0):
        return super().broadcast(obj, src)


if __name__ == "__main__":
    rank = scenario.rank()
    scenario.pl.seed_everything(7 if scenario.CASE == "one_seed" else 7 + rank)
    model = Model()
    strategy = Strategy() if scenario.CASE == "override" else "ddp"
    trainer = scenario.trainer(devices=2, strategy=strategy, max_epochs=2, num_sanity_val_steps=0)
    shuffles = "unlike" not in scenario.CASE or rank == 0
    loaders = [
        DataLoader(ITEMS, batch_size=2, shuffle=shuffles) for _ in range(2 if "validation" in scenario.CASE else 1)
    ]
    trainer.fit(model, *loaders)
    scenario.observe(epochs=model.epochs)
