"""Loggers raise a ValueError because of a folder such as version_best."""

from _expect import bug

EXPECT = [
    bug(
        ["", "pytorch-tensorboard", "fabric-tensorboard"],
        stock="ValueError: invalid literal for int() with base 10: 'best'",
        patched={"version": 1},
    )
]

import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path

import _scenario as scenario

if __name__ == "__main__":
    root = Path.cwd().resolve()
    for name in ("version_0", "version_best"):
        (root / "run" / name).mkdir(parents=True)
    if importlib.util.find_spec("tensorboard") is None:  # a stand-in: it is not needed to choose a folder
        sys.modules["tensorboard"] = types.ModuleType("tensorboard")
        sys.modules["tensorboard"].__spec__ = importlib.machinery.ModuleSpec("tensorboard", None)
    kind, _, what = scenario.CASE.partition("-")
    loggers = scenario.fabric("loggers") if kind == "fabric" else scenario.pytorch("loggers")
    logger = {"": loggers.CSVLogger, "tensorboard": loggers.TensorBoardLogger}[what](root, name="run")
    with scenario.observing_errors():
        scenario.observe(version=logger.version)
