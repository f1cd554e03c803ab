"""Memory runs out at a batch size that holds the whole dataset of 32 items.

Cases: the mode; ``long MODE`` for a dataset that is longer than each size."""

from _expect import bug, same

EXPECT = [
    bug("power", stock={"size": 32, "is_endless": False}, patched={"size": 16, "is_endless": False}, like="long power"),
    bug(
        "binsearch",
        stock={"is_endless": True},
        patched={"is_endless": False},
        compare=["is_endless"],
        like="long power",
    ),
    same("long binsearch", "a dataset that is longer"),
]

import _scenario as scenario
import torch

IS_LONG, _, MODE = scenario.CASE.rpartition(" ")


class EndlessError(Exception):
    pass


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.batch_size = 2
        self.trials = 0

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.ones(320 if IS_LONG else 32, 32), batch_size=self.batch_size)

    def training_step(self, batch, batch_idx):
        if len(batch) > 20:
            self.trials += 1
            if self.trials > 40:
                raise EndlessError
            raise RuntimeError("CUDA out of memory. Tried to allocate")
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    trainer = scenario.trainer(max_epochs=1, limit_val_batches=0)
    try:
        size = scenario.tuner(trainer).scale_batch_size(Model(), mode=MODE, max_trials=12)
        scenario.observe(size=size, is_endless=False)
    except EndlessError:
        scenario.observe(is_endless=True)
