"""LearningRateMonitor with manual optimization. Case: the scheduler's interval."""

from _expect import bug, same


def _rates(*steps):
    return [[step, (0.5**step).hex()] for step in steps]


EXPECT = [
    bug("step", stock={"rates": _rates(0, 2)}, patched={"rates": _rates(0, 1, 2, 3), "frequency": 1}),
    same(
        ["", "epoch"],
        "rates are logged once per epoch unless the interval is a step",
        {"rates": _rates(0, 2), "frequency": 1},
    ),
]

import _scenario as scenario
import torch


class Logger(scenario.pl.loggers.CSVLogger):
    rates = []

    def log_metrics(self, metrics, step=None):
        self.rates += [[step, value] for name, value in metrics.items() if name.startswith("lr-")]


class Model(scenario.boring_model()):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        self.manual_backward(super().training_step(batch, batch_idx)["loss"])
        self.optimizers().step()
        self.lr_schedulers().step()

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
        scheduler = {"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5), "frequency": 7}
        if scenario.CASE:
            scheduler["interval"] = scenario.CASE
        return [optimizer], [scheduler]


if __name__ == "__main__":
    trainer = scenario.trainer(
        max_epochs=2,
        limit_train_batches=2,
        limit_val_batches=0,
        log_every_n_steps=1,
        logger=Logger(scenario.QUIET["default_root_dir"]),
        callbacks=[scenario.pl.callbacks.LearningRateMonitor()],
    )
    trainer.fit(Model())
    (config,) = trainer.lr_scheduler_configs
    scenario.observe(rates=Logger.rates, frequency=config.frequency)
