"""CometLogger(online=False) records nothing. A stand-in for comet_ml writes what is logged to a file. Cases:
``offline``, ``started`` (the program starts the same experiment by itself), ``online``, ``disabled`` (by the
program)."""

from _expect import bug, same

EXPECT = [
    bug(
        "offline",
        stock=lambda seen: seen["disabled"] is True and (not seen["recorded"]),
        patched=lambda seen: seen["recorded"] and seen["online"] is False,
        like="started",
        since="2.5.1",
    ),
    same(["online", "disabled"], "other experiments are unchanged"),
]

import os
import sys
import types

import _scenario as scenario

OUT = "."


class Config:
    def __init__(self, disabled=False, offline_directory=None):
        self.disabled, self.offline_directory = disabled, offline_directory


class Experiment:
    project_name = "project"

    def __init__(self, config, online):
        self.config, self.online, self.logged = config, online, []

    def get_key(self):
        return "key"

    def __getattr__(self, name):
        def log(*args, **kwargs):
            if "log_metrics" in name and not self.config.disabled:
                self.logged.append(args[0])
                with open(os.path.join(self.config.offline_directory, "experiment.txt"), "a") as file:
                    file.write(f"{args[0]}\n")

        return log


comet = types.ModuleType("comet_ml")
comet.ExperimentConfig = Config
comet.start = lambda experiment_config=None, online=None, **_: Experiment(experiment_config, online)
sys.modules["comet_ml"] = comet

if __name__ == "__main__":
    scenario.pytorch("loggers.comet")._COMET_AVAILABLE = True
    options = {"disabled": True} if scenario.CASE == "disabled" else {}
    if scenario.CASE == "started":
        experiment = comet.start(Config(offline_directory=OUT), online=False)
        experiment.log_metrics({"loss": 1.0})
    else:
        logger = scenario.pl.loggers.CometLogger(
            online=scenario.CASE == "online", offline_directory=OUT, project="project", **options
        )
        logger.log_metrics({"loss": 1.0})
        experiment = logger.experiment
    scenario.observe(
        recorded=os.path.exists(os.path.join(OUT, "experiment.txt")),
        disabled=experiment.config.disabled,
        online=experiment.online,
    )
