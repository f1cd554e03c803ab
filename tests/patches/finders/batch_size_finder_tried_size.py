"""The batch size finder returns a batch size that it never tried. Cases: ``power``, ``one`` (a single trial), ``oom``
(out of memory above 8), ``first`` (nor for the size of the first trial), ``small`` (the data have less than the finder
would try), ``binsearch``."""

from _expect import bug, same

EXPECT = [
    bug(
        "power",
        stock=lambda seen: seen["found"] == seen["set"] == 16 and 16 not in seen["tried"],
        patched=lambda seen: seen["found"] == seen["set"] and seen["found"] in seen["tried"],
    ),
    same(["oom", "first", "small"], "search that ends without an error is unchanged", alone=True),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

LIMITS = {"oom": 8, "first": 4}


class Model(Linear):
    features, lr = 1, 1e-6

    def __init__(self):
        super().__init__()
        self.batch_size = 1
        self.tried = []

    def training_step(self, batch, batch_idx):
        if len(batch) not in self.tried[-1:]:
            self.tried.append(len(batch))
        if len(batch) > LIMITS.get(scenario.CASE, 1000):
            raise RuntimeError("CUDA out of memory. Simulated.")
        return self.layer(batch).pow(2).mean()

    def train_dataloader(self):
        length = 10 if scenario.CASE == "small" else 400
        return DataLoader(torch.arange(float(length)).reshape(length, 1), batch_size=self.batch_size)


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    trainer = scenario.trainer(max_epochs=1)
    with scenario.observing_warnings():
        found = scenario.tuner(trainer).scale_batch_size(
            model,
            mode="binsearch" if scenario.CASE == "binsearch" else "power",
            steps_per_trial=1,
            max_trials={"power": 3, "binsearch": 3, "one": 1}.get(scenario.CASE, 10),
            init_val=16 if scenario.CASE == "first" else 2,
        )
    scenario.observe(found=found, set=model.batch_size, tried=model.tried)
