"""PR 17942: Fabric's CSVLogger without step=, in a run that is killed. Cases: "" and ``step`` (the step is given)."""

from pathlib import Path

import _scenario as scenario

if __name__ == "__main__":
    logger = scenario.fabric("loggers").CSVLogger(".", flush_logs_every_n_steps=2)
    for step in range(5):
        logger.log_metrics({"loss": float(step)}, **({"step": step} if scenario.CASE else {}))
    file = Path(logger.log_dir, "metrics.csv")
    before = file.read_text().split() if file.exists() else None
    logger.finalize("success")
    scenario.observe(before=before, after=file.read_text().split())
