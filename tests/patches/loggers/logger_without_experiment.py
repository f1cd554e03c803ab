"""A logger without an experiment ends the run."""

from _expect import bug, same_calls

EXPECT = [
    bug(stock="object has no attribute 'experiment'", patched={"logged": [["epoch", "index"]], "has": False}),
    same_calls("callers: properties", "overridden Trainer properties are not read", on="2.0.6"),
]

import _scenario as scenario


class Logger(scenario.pytorch("loggers.logger").Logger):
    name = "own"
    version = 0

    def __init__(self):
        super().__init__()
        self.logged = []

    def log_metrics(self, metrics, step=None):
        self.logged.append(sorted(metrics))

    def log_hyperparams(self, params):
        pass


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        self.log("index", float(batch_idx))
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    logger = Logger()
    trainer = scenario.trainer(max_steps=1, limit_val_batches=0, log_every_n_steps=1, logger=logger)
    with scenario.observing_errors():
        trainer.fit(Model())
    scenario.observe(logged=logger.logged, has=hasattr(logger, "experiment"))
