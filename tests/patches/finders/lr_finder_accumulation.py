"""A learning rate is searched while gradients are accumulated. Cases: ``none`` (an epoch has fewer batches than are
accumulated), ``some`` (the last step of an epoch is left out), ``all`` (an epoch is a multiple of the accumulation).
With ``-as-one``, the batches are as large as an accumulation of the case."""

from _expect import bug, same

EXPECT = [
    *[
        bug(
            case,
            stock=lambda seen: seen["points"] < 12,
            patched=lambda seen: seen["points"] == len(seen["rates"]) == 12,
            compare=("rates", "points"),
            like=f"{case}-as-one",
        )
        for case in ("none", "some")
    ],
    same("all", "search that records all steps is unchanged", on=("2.0.0", "2.6.6")),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

CASE, AS_ONE, _ = scenario.CASE.partition("-as-one")
BATCHES, ACCUMULATE = {"none": (2, 4), "some": (3, 2), "all": (4, 2)}[CASE]


class Model(Linear):
    weight = 1.0

    def training_step(self, batch, batch_idx):
        return (self.layer(batch) - 1).pow(2).mean()


if __name__ == "__main__":
    row = torch.ones(1, 2)  # all rows are equal, so that the loss of a batch is that of its accumulation
    batches = -(-BATCHES // ACCUMULATE) if AS_ONE else BATCHES
    accumulate = 1 if AS_ONE else ACCUMULATE
    trainer = scenario.trainer(accelerator="cpu", max_epochs=50, accumulate_grad_batches=accumulate)
    with scenario.observing_warnings():
        data = DataLoader(row.repeat(batches, 1), batch_size=1)
        found = scenario.tuner(trainer).lr_find(
            Model(), data, num_training=12, min_lr=1e-4, max_lr=1e-2, early_stop_threshold=None, update_attr=False
        )
    scenario.observe(rates=[round(rate, 8) for rate in found.results["lr"]], points=len(found.results["loss"]))
