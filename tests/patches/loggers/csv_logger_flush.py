"""Fabric's CSVLogger without step=, in a run that is killed. Cases: none, ``step`` (the step is given), ``own`` (a
custom experiment)."""

from _expect import bug, same

ROWS = ["loss,step", "0.0,0", "1.0,1", "2.0,2", "3.0,3", "4.0,4"]

EXPECT = [
    bug(stock={"before": None}),
    same("step", "given steps are logged unchanged", {"before": ROWS[:5], "after": ROWS}),
    same("own", "custom experiment receives unchanged arguments", {"steps": [None, 7, "saved"]}),
]

from pathlib import Path

import _scenario as scenario


class Own:
    """An experiment that keeps no rows, and counts steps itself."""

    def __init__(self):
        self.steps = []

    def log_metrics(self, metrics, step):
        self.steps.append(step)

    def save(self):
        self.steps.append("saved")


class Logger(scenario.fabric("loggers").CSVLogger):
    own = Own()

    @property
    def experiment(self):
        return self.own


if __name__ == "__main__" and scenario.CASE == "own":
    logger = Logger(".", flush_logs_every_n_steps=1)
    logger.log_metrics({"loss": 0.0})
    logger.log_metrics({"loss": 1.0}, step=7)
    scenario.observe(steps=logger.own.steps)
elif __name__ == "__main__":
    logger = scenario.fabric("loggers").CSVLogger(".", flush_logs_every_n_steps=2)
    for step in range(5):
        logger.log_metrics({"loss": float(step)}, **({"step": step} if scenario.CASE else {}))
    file = Path(logger.log_dir, "metrics.csv")
    before = file.read_text().split() if file.exists() else None
    logger.finalize("success")
    scenario.observe(before=before, after=file.read_text().split())
