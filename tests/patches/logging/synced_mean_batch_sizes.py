"""The mean of an epoch under DDP, of two CPU ranks with unequal numbers of batches. Each value is 1 in the first
observation, and the mean of the batch in the second. Cases: "" (3 and 2 batches of one item), ``equal`` (3 and 3),
``sizes`` (3 and 3, of two items and of one), ``metric`` and ``metric-sizes`` (a torchmetrics.MeanMetric in place of the
numbers)."""

from _expect import bug, fixed, same, same_calls, whole_run


def _logged(ones, numbers):
    """Return a check that both ranks logged these means."""
    return whole_run(
        lambda result: (
            len(result.observations) == 2
            and all(
                abs(float.fromhex(rank["ones_mean"]) - ones) + abs(float.fromhex(rank["numbers_mean"]) - numbers) < 1e-6
                for rank in result.observations
            )
        )
    )


EXPECT = [
    bug(stock=_logged(1.25, 1.0), patched=_logged(1.0, 0.8), like="metric"),
    fixed(
        "sizes", "mean equals that of torchmetrics", stock=_logged(1.125, 2.25), patched=_logged(1.0, 2.0), on="2.2.5"
    ),
    same("equal", "equal batch sizes are unchanged"),
    same_calls("synced", "custom reduce gets the arguments of stock"),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader
from torchmetrics import MeanMetric

EQUAL, SIZES, METRIC = (word in scenario.CASE for word in ("equal", "sizes", "metric"))


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.ones, self.numbers = MeanMetric(), MeanMetric()

    def validation_step(self, batch, batch_idx):
        for name, value in (("ones", 1.0), ("numbers", float(batch.sum()) / len(batch))):
            if METRIC:
                metric = getattr(self, name)
                metric.update(value, weight=len(batch))
                self.log(f"{name}_mean", metric, on_epoch=True)
            else:
                self.log(f"{name}_mean", value, on_epoch=True, sync_dist=True, batch_size=len(batch))


if __name__ == "__main__":
    trainer = scenario.trainer(devices=2, strategy="ddp", use_distributed_sampler=False)
    rank = trainer.global_rank
    size = 2 if SIZES and rank == 0 else 1
    data = torch.arange(size * (3 if rank == 0 or EQUAL or SIZES else 2), dtype=torch.float32)[:, None]
    trainer.validate(Model(), DataLoader(data, batch_size=size), verbose=False)
    scenario.observe(**{name: float(value) for name, value in trainer.callback_metrics.items()})
