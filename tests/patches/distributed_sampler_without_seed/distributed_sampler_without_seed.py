"""A shuffled DataLoader on two CPU ranks that have different random states, as without a seed. Cases: ``shuffled``,
``seeded`` (with seed_everything), ``generator`` (the order has a separate seed), ``some`` (half of the items, drawn
again in each epoch)."""

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

ITEMS = TensorDataset(torch.arange(16.0).reshape(-1, 1))


def loader():
    if scenario.CASE == "generator":
        return DataLoader(ITEMS, batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(5))
    if scenario.CASE == "some":
        return DataLoader(ITEMS, batch_size=2, sampler=RandomSampler(ITEMS, num_samples=8))
    return DataLoader(ITEMS, batch_size=2, shuffle=True)


class Model(Linear):
    features, lr = 1, 0.01
    epochs = []

    def on_train_epoch_start(self):
        self.epochs.append([])

    def training_step(self, batch, batch_idx):
        self.epochs[-1] += [int(item) for item in batch[0].flatten()]
        return self.layer(batch[0]).mean()


if __name__ == "__main__":
    if scenario.CASE == "seeded":
        scenario.pl.seed_everything(7)
    else:
        torch.manual_seed(17 + scenario.rank())  # different in each rank, but the same in every variant
    model = Model()
    trainer = scenario.trainer(devices=2, strategy="ddp", max_epochs=2)
    trainer.fit(model, loader())
    scenario.observe(epochs=model.epochs)
