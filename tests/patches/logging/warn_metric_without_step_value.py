"""An updated metric is logged with on_step, but has no step value. Cases: ``update``, ``running`` (RunningMean),
``forward`` (the metric is called), ``epoch`` (on_epoch only), ``tensor``."""

from _expect import same, warns

SAYS = "self.log('mean', ..., on_step=True) logs no value for the step: {} has none."

EXPECT = [
    warns("update", "missing step value causes one warning", SAYS.format("MeanMetric"), on=("2.0.0", "2.6.6")),
    warns(
        "running",
        "missing step value of a running mean causes one warning",
        SAYS.format("RunningMean"),
        on=("2.0.0", "2.6.6"),
    ),
    same(["forward", "epoch", "tensor"], "warning is absent if all values are logged"),
]

import _scenario as scenario
import torch
import torchmetrics

CASE = scenario.CASE


class Log(scenario.pytorch("loggers.logger").DummyLogger):
    def __init__(self):
        super().__init__()
        self.names = []

    def log_metrics(self, metrics, step=None):
        self.names += sorted(set(metrics) - {"epoch"})


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.mean = torchmetrics.RunningMean() if CASE == "running" else torchmetrics.MeanMetric()

    def training_step(self, batch, batch_idx):
        value = torch.tensor(1.0 + batch_idx)
        (self.mean.update if CASE in ("update", "epoch") else self.mean)(value)
        self.log("mean", value if CASE == "tensor" else self.mean, on_step=CASE != "epoch", on_epoch=True)
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    log = Log()
    trainer = scenario.trainer(
        max_epochs=1, limit_train_batches=3, limit_val_batches=0, logger=log, log_every_n_steps=1
    )
    with scenario.observing_warnings():
        trainer.fit(Model())
    scenario.observe(names=log.names)
