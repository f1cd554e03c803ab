"""Validation at step 0 of a ``max_steps`` run, after the LearningRateFinder callback."""

from _expect import bug, fixed, patched, same

TOGETHER = "lr-finder-restarting-flag,lr-finder-val-loader,lr-finder-train-loader,lr-finder-applies-lr"
STEPS = [f"train {step}" for step in range(10)]

NEWEST = {"events": [*STEPS[:8], "validate 8", *STEPS[8:]]}

EXPECT = [
    # Not compared: later validations and weights: 2.3.0 has the bug of lr-finder-train-loader, which 2.0 has not
    bug(
        stock=lambda seen: seen["events"][0] == "validate 0",
        compare=lambda ranks: [[e for e in rank["events"] if e in STEPS or e == "validate 0"] for rank in ranks],
    ),
    fixed(
        "",
        "patch alone equals the first fixed release",
        stock=lambda seen: seen["events"][0] == "validate 0",
        alone=True,
    ),
    patched(
        "",
        "all finder patches validate as the newest release",
        NEWEST,
        toggle=TOGETHER,
        on=("2.0.0", "2.2.5"),
    ),
    same(
        "",
        "newest release is unchanged",
        NEWEST,
        toggle=TOGETHER,
        on="2.6.6",
    ),
    patched(
        "",
        "each finder patch fixes its bug alone",
        {"events": [*STEPS, "validate 10"]},
        toggle=f"{TOGETHER},-lr-finder-train-loader",
    ),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset


class Model(Linear):
    features, lr = 4, 1e-3

    def __init__(self):
        super().__init__()
        self.searching = True
        self.events = []

    def training_step(self, batch, batch_idx):
        if not self.searching:
            self.events.append(f"train {self.global_step}")
        return self.layer(batch[0]).pow(2).mean()

    def validation_step(self, batch, batch_idx):
        if not self.searching:
            self.events.append(f"validate {self.global_step}")

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.arange(64.0).reshape(16, 4) / 64), batch_size=2)

    val_dataloader = train_dataloader

    def on_fit_start(self):  # comes after the callbacks' on_fit_start, where the finder runs
        self.searching = False


if __name__ == "__main__":
    scenario.pl.seed_everything(7)
    model = Model()
    finder = scenario.pl.callbacks.LearningRateFinder(max_lr=1e-2, num_training_steps=6, update_attr=False)
    trainer = scenario.trainer(
        max_steps=10, val_check_interval=8, limit_val_batches=1, num_sanity_val_steps=0, callbacks=[finder]
    )
    trainer.fit(model)
    scenario.observe(events=model.events, weight=model.layer.weight)
