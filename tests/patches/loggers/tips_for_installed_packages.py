"""A Trainer prints tips to install litlogger and litmodels, though they are installed. Cases: "", ``missing`` (they are
not installed), ``one`` (only litlogger), ``quiet`` (the program drops the tips)."""

from _expect import bug, fixed, same

EXPECT = [
    bug(stock={"tips": ["litlogger", "litmodels"]}, like="quiet"),
    same("missing", "tips for other packages are unchanged", {"tips": ["litlogger", "litmodels"]}),
    fixed(
        "one",
        "only the tip for the installed package is left out",
        stock=lambda seen: "litlogger" in seen["tips"],
        patched={"tips": ["litmodels"], "filters": 0},
    ),
]

import logging
import os
import sys
import tempfile
from pathlib import Path

import _scenario as scenario

CASE = scenario.CASE
INSTALLED = {"missing": (), "one": ("litlogger",)}.get(CASE, ("litlogger", "litmodels"))

if __name__ == "__main__":
    site = Path(tempfile.mkdtemp())
    sys.path.append(str(site))
    for name in INSTALLED:
        (site / f"{name}-1.0.0.dist-info").mkdir()
        (site / f"{name}-1.0.0.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n"
        )
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    log = logging.getLogger(scenario.pytorch("utilities.rank_zero").__name__)
    log.addHandler(handler)
    if CASE == "quiet":
        log.addFilter(lambda record: "Tip" not in record.getMessage())
    os.chdir(os.environ.get("SCENARIO_OUT", str(site)))
    trainer = scenario.trainer(
        accelerator="cpu", max_steps=1, limit_val_batches=0, logger=True, enable_checkpointing=True
    )
    trainer.fit(scenario.boring_model()())
    scenario.observe(
        tips=[name for name in ("litlogger", "litmodels") if any(f"[{name}]" in message for message in messages)],
        others=[message for message in messages if "Tip" not in message],
        filters=len(log.filters) - (CASE == "quiet"),
    )
