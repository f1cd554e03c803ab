"""Loggers get a step that was logged as "step" as a float."""

from _expect import bug, same


def of(kind):
    return {"seen": [[["index"], 5, kind], [["index"], 6, kind]], "logged": ["index", "step"]}


EXPECT = [
    bug(stock=of("float"), patched=of("int")),
    same("without", "metrics without a step are unchanged", toggle="all", on="2.5.1"),
]

import os

import _scenario as scenario


class Logger(scenario.pl.loggers.CSVLogger):
    seen = []

    def log_metrics(self, metrics, step=None):
        self.seen.append([sorted(metrics), step, type(step).__name__])


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        if scenario.CASE != "without":
            self.log("step", float(batch_idx + 5))
        self.log("index", float(batch_idx))
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    logger = Logger(os.getcwd())
    trainer = scenario.trainer(max_steps=2, limit_val_batches=0, log_every_n_steps=1, logger=logger)
    trainer.fit(Model())
    scenario.observe(
        seen=[[names, int(step), kind] for names, step, kind in logger.seen], logged=sorted(trainer.logged_metrics)
    )
