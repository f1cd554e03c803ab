"""CSVLogger takes version_0 for each run."""

from _expect import bug, fixed

RIGHT = {"versions": [0, 1, 2], "folders": ["version_0", "version_1", "version_2"]}

EXPECT = [
    bug("fabric", stock={"versions": [0, 0, 0], "folders": ["version_0"]}, patched=RIGHT),
    fixed(
        "",
        "trainer logger of an old release is fixed",
        stock={"versions": [0, 0, 0], "folders": ["version_0"]},
        patched=RIGHT,
        toggle="all",
        on="2.0.2",
    ),
]

import os

import _scenario as scenario

if __name__ == "__main__":
    os.chdir(os.environ.get("SCENARIO_OUT", "."))
    loggers = scenario.fabric("loggers") if scenario.CASE == "fabric" else scenario.pytorch("loggers")
    versions = []
    for run in range(3):
        logger = loggers.CSVLogger("logs")
        logger.log_metrics({"run": float(run)}, step=0)
        logger.save()
        versions.append(logger.version)
    scenario.observe(versions=versions, folders=sorted(os.listdir("logs/lightning_logs")))
