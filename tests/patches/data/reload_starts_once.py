"""Data loaders are reloaded in each epoch. Case ``kept``: they are not."""

from _expect import bug, same


def starts(number):
    return {"starts": number}


EXPECT = [
    bug(stock=starts(5), patched=starts(3), like="kept"),
    same("kept", "run without reloaded loaders is unchanged"),
]

import _scenario as scenario
import torch


class Stream:
    """A stream without a length, which an iterator uses up."""

    starts, item = 0, 0

    def __iter__(self):
        Stream.starts += 1
        for _ in range(4):
            Stream.item += 1
            yield torch.tensor([float(Stream.item)])


class Model(scenario.BoringModel):
    seen = ()

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def train_dataloader(self):
        return Stream()

    def training_step(self, batch, batch_idx):
        self.seen += (int(batch),)
        return self.layer(batch).sum()


if __name__ == "__main__":
    model = Model()
    options = {} if scenario.CASE == "kept" else {"reload_dataloaders_every_n_epochs": 1}
    scenario.trainer(max_epochs=3, limit_val_batches=0, **options).fit(model)
    scenario.observe(starts=Stream.starts, seen=model.seen)
