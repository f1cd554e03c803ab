"""Two ranks that log different names. Cases: ``epoch``, ``step``, ``order`` (the same names in another order), ``hook``
(at the end of the epoch), ``metric`` (a Metric of torchmetrics), ``turns`` (another rank is late in each epoch); and
programs that are right: ``same``, ``local`` (other names, not synchronized), ``first`` (rank zero alone, by
rank_zero_only), ``computed`` (a Metric that has its value)."""

from _expect import patched, same, whole_run


def lists(*names):
    """Return a check that one rank warns of the names of both, and that the values are right."""

    def is_warned_of(result):
        ((rank, warning),) = [(rank, one) for rank, seen in enumerate(result.observations) for one in seen["warnings"]]
        values = {value for seen in result.observations for value in seen["values"].values()}
        words = f"rank {rank} has logged ({names[rank]}), rank {1 - rank} ({names[1 - rank]})."
        return result.ok and values == {15} and words in warning

    return whole_run(is_warned_of)


EXPECT = [
    same(
        "epoch",
        "selected patch changes no value",
        whole_run(lambda result: [rank["values"] for rank in result.observations] == [{"even": 15}, {"odd": 15}]),
        compare="values",
    ),
    same(["same", "local", "first", "computed"], "warning is absent if ranks log the same names"),
    patched(["epoch", "turns", "metric"], "warning lists the names of each rank", lists("even", "odd")),
    patched("order", "warning lists the names of each rank", lists("even, odd", "odd, even")),
    patched(["step", "hook"], "warning lists the names of each rank", lists("even", "odd"), on="2.0.0"),
]

import time

import _scenario as scenario
import torch
import torchmetrics

CASE = scenario.CASE


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.mean = torchmetrics.MeanMetric()
        self.total = torchmetrics.MeanMetric()

    def put(self, *names, **options):
        for name in names:
            self.log(name, {"even": 10.0, "odd": 20.0}[name], batch_size=2, **options)

    def training_step(self, batch, batch_idx):
        if CASE == "step":
            self.put("odd" if self.global_rank else "even", sync_dist=True)
        elif CASE == "same":
            self.put("even", "odd", sync_dist=True)
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        first = self.global_rank == 0
        own = "even" if first else "odd"
        if CASE in ("epoch", "turns"):
            self.put(own, sync_dist=True)
        elif CASE == "order":
            self.put(*(("even", "odd") if first else ("odd", "even")), sync_dist=True)
        elif CASE == "same":
            self.put("even", "odd", sync_dist=True)
        elif CASE == "local":
            self.put(own)
        elif CASE == "first" and first:
            self.put("even", rank_zero_only=True, sync_dist=True)
        elif CASE in ("metric", "computed"):
            metric = self.mean if first else self.total
            metric.update(10.0 if first else 20.0)
            if CASE == "metric":
                self.log(own, metric)

    def on_validation_epoch_end(self):
        own = "odd" if self.global_rank else "even"
        if CASE == "turns" and self.global_rank == self.current_epoch:
            time.sleep(1)
        if CASE == "hook":
            self.put(own, sync_dist=True)
        if CASE == "computed":
            self.mean.update(1.0)
            self.mean.compute()
            if self.global_rank == 0:
                self.log("even", self.mean)


if __name__ == "__main__":
    trainer = scenario.trainer(
        devices=2, strategy="ddp", max_epochs=2, limit_train_batches=2, limit_val_batches=2, num_sanity_val_steps=0
    )
    data = torch.utils.data.DataLoader(torch.ones(8, 32), batch_size=2)
    with scenario.observing_warnings():
        trainer.fit(Model(), data, data)
    values = {
        name: float(trainer.callback_metrics[name]) for name in ("even", "odd") if name in trainer.callback_metrics
    }
    scenario.observe(values={name: round(value) for name, value in values.items()})
