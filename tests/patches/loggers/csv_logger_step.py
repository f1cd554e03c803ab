"""Fabric's CSVLogger without step=, which counts the rows. Cases: "", ``step`` (it is given), ``every`` (each row is
written at once), ``mixed`` (some rows have a step), ``stand-in`` (a mock writer, which has every attribute), ``own`` (a
logger of the program, which does not call ``CSVLogger.__init__``)."""

from _expect import bug, patched, same

RIGHT = {"steps": [0, 1, 2, 3, 4], "losses": [0.0, 1.0, 2.0, 3.0, 4.0]}

EXPECT = [
    bug(stock={"steps": [0, 1, 0, 1, 0]}, patched=RIGHT, like="step"),
    bug("every", stock={"steps": [0, 0, 0, 0, 0]}, patched=RIGHT, like="step"),
    same("stand-in", "custom writer receives the arguments of stock", lambda seen: seen["called"]),
    same("own", "logger with another writer counts the rows as on stock", {"metrics": [{"loss": 0.0, "step": 0}]}),
    same("step", "given steps are logged unchanged", RIGHT, on=("2.1.0", "2.6.6")),
    patched("mixed", "given steps are logged beside counted ones", RIGHT, on=("2.1.0", "2.6.6")),
]

import csv
from pathlib import Path
from unittest import mock

import _scenario as scenario

if __name__ == "__main__":
    every = 1 if scenario.CASE == "every" else 2
    logger = scenario.fabric("loggers").CSVLogger(".", flush_logs_every_n_steps=every)
    if scenario.CASE == "stand-in":
        logger._experiment = mock.MagicMock()
        logger.log_metrics({"loss": 0.0})
        scenario.observe(called=[str(call) for call in logger._experiment.log_metrics.mock_calls])
    elif scenario.CASE == "own":

        class Own(type(logger)):
            def __init__(self):
                self._prefix, self._flush_logs_every_n_steps = "", 2

            experiment = logger.experiment

        own = Own()
        own.log_metrics({"loss": 0.0})
        scenario.observe(metrics=own.experiment.metrics)
    else:
        for step in range(5):
            given = scenario.CASE == "step" or scenario.CASE == "mixed" and step % 2
            logger.log_metrics({"loss": float(step)}, **({"step": step} if given else {}))
        logger.finalize("success")
        with open(Path(logger.log_dir, "metrics.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        scenario.observe(losses=[float(row["loss"]) for row in rows], steps=[int(row["step"]) for row in rows])
