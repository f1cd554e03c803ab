"""Two CPU ranks and a custom sampler, on which Lightning does not call set_epoch. Cases: ``told`` (the script calls
set_epoch with its own counter at the start of each epoch), ``without`` (the sampler has no ``set_epoch``)."""

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, Sampler, TensorDataset


class Curriculum(Sampler):
    def __init__(self):
        self.first = 0

    def __len__(self):
        return 4

    def __iter__(self):
        return iter(range(self.first, self.first + 4))


class Told(Curriculum):
    def set_epoch(self, epoch):
        self.first = 4 * epoch


class Model(Linear):
    features, lr = 1, 0.0
    seen = []

    def on_train_epoch_start(self):
        if scenario.CASE == "told":
            sampler.set_epoch(2 * self.current_epoch)

    def training_step(self, batch, batch_idx):
        self.seen.append(int(batch[0]))
        return self.layer(batch[0]).mean()


if __name__ == "__main__":
    sampler = Told() if scenario.CASE == "told" else Curriculum()
    model = Model()
    trainer = scenario.trainer(devices=2, strategy="ddp", max_epochs=3)
    trainer.fit(model, DataLoader(TensorDataset(torch.arange(24.0).reshape(-1, 1)), batch_size=1, sampler=sampler))
    scenario.observe(seen=model.seen)
