"""CSVLogger writes its whole file at each line."""

from _expect import bug, same

EXPECT = [
    bug(
        stock=lambda seen: seen["again"] and len(seen["rows"]) == 60,
        patched=lambda seen: not seen["again"] and len(seen["rows"]) == 60,
    ),
    # Also with a column that is added later, and if another process has written the file.
    same(
        ["columns", "touched"],
        "checkpoint file is unchanged",
        lambda seen: len(seen["rows"]) == 8,
        compare="rows",
        on=("1.8.6", "2.0.0", "2.0.9"),
    ),
]

import csv
import os
from pathlib import Path

import _scenario as scenario


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        self.log("index", float(batch_idx))
        if scenario.CASE == "columns" and batch_idx == 2:
            self.log("late", 1.0)
        if scenario.CASE == "touched" and batch_idx == 3:
            Path(self.logger.experiment.metrics_file_path).write_text("gone")
        return super().training_step(batch, batch_idx)


def written():
    """Return the number of bytes that this process has written."""
    (line,) = (line for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("wchar"))
    return int(line.split()[1])


if __name__ == "__main__":
    logger = scenario.pl.loggers.CSVLogger(os.getcwd(), name="run", version=0)
    steps = 60 if not scenario.CASE else 8
    trainer = scenario.trainer(max_steps=steps, max_epochs=1, limit_val_batches=0, log_every_n_steps=1, logger=logger)
    before = written()
    trainer.fit(Model())
    file = Path(logger.experiment.metrics_file_path)
    rows = list(csv.DictReader(file.read_text().splitlines()))
    scenario.observe(again=written() - before > 10 * file.stat().st_size, rows=rows)
