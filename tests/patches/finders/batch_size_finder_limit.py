"""From 2.6.0 on, the batch size finder returns max_val, or a size above it, without a trial. Cases: ``power`` and
``binsearch`` (from 3, with max_val=20), ``oom`` (out of memory above 8), ``small`` (the dataset is smaller than the
limit), ``trials`` and ``binsearch-trials`` (max_trials ends it)."""

from _expect import bug, same

EXPECT = [
    *[
        bug(
            case,
            stock=lambda seen: seen["found"] >= 20 and (not seen["is_tried"]),
            patched=lambda seen: seen["found"] == seen["set"] == 12 and seen["is_tried"],
            like={"power": "trials", "binsearch": "binsearch-trials"}[case],
            since="2.6.0",
        )
        for case in ("power", "binsearch")
    ],
    same(["oom", "small", "trials"], "search that ends below the limit is unchanged", alone=True),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

CASE = scenario.CASE


class Model(Linear):
    features, lr = 1, 1e-6

    def __init__(self):
        super().__init__()
        self.batch_size = 1
        self.tried = []

    def training_step(self, batch, batch_idx):
        if len(batch) not in self.tried[-1:]:
            self.tried.append(len(batch))
        if len(batch) > (8 if CASE == "oom" else 1000):
            raise RuntimeError("CUDA out of memory. Simulated.")
        return self.layer(batch).pow(2).mean()

    def train_dataloader(self):
        length = 10 if CASE == "small" else 400
        return DataLoader(torch.arange(float(length)).reshape(length, 1), batch_size=self.batch_size)


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    with scenario.observing_warnings():
        found = (
            scenario.pytorch("tuner")
            .Tuner(scenario.trainer(max_epochs=1))
            .scale_batch_size(
                model,
                mode="binsearch" if CASE.startswith("binsearch") else "power",
                steps_per_trial=1,
                max_trials=3 if CASE.endswith("trials") else 10,
                init_val=3,
                **({"max_val": 20, "margin": 0.0} if hasattr(scenario.pl.callbacks, "EMAWeightAveraging") else {}),
            )
        )
    scenario.observe(found=found, set=model.batch_size, tried=model.tried, is_tried=found in model.tried)
