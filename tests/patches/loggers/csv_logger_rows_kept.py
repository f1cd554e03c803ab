"""A resumed run with the same version of CSVLogger deletes the rows from before the resume. Cases: none; ``columns``
(the resumed run logs another column); ``unsorted`` (the program has sorted the columns in another way); ``versions``
(each run has its own version, and the program reads both files); ``empty`` (no run before)."""

from _expect import bug, patched, same


def another(seen):
    """Return the steps and the values of the other column."""
    return [(row["step"], row.get("another")) for row in seen["rows"]]


EXPECT = [
    bug(
        ["", "unsorted"],
        stock=lambda seen: [row["step"] for row in seen["rows"]] == ["2", "3"],
        patched=lambda seen: [row["step"] for row in seen["rows"]] == ["0", "1", "2", "3"],
        like="versions",
    ),
    same(["empty", "versions"], "first run is unchanged", alone=True),
    patched(
        "columns",
        "column of the resumed run is added",
        lambda seen: another(seen) == [("0", None), ("1", None), ("2", "1.0"), ("3", "1.0")],
        alone=True,
    ),
]

import csv
from pathlib import Path

import _scenario as scenario

CASE = scenario.CASE
CSVLogger = scenario.pl.loggers.CSVLogger


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        self.log("batch", float(batch_idx))
        if CASE == "columns" and self.current_epoch:
            self.log("another", 1.0)
        return super().training_step(batch, batch_idx)


def fit(version, max_epochs, path=None):
    logger = CSVLogger("logs", name="", version=version)
    trainer = scenario.trainer(
        max_epochs=max_epochs, limit_train_batches=2, limit_val_batches=0, log_every_n_steps=1, logger=logger
    )
    trainer.fit(Model(), ckpt_path=path)
    trainer.save_checkpoint("last.ckpt")


def rows(version):
    with Path("logs", version, "metrics.csv").open(newline="") as file:
        return [{name: value for name, value in row.items() if value} for row in csv.DictReader(file)]


if __name__ == "__main__":
    second = "2" if CASE == "versions" else "1"
    if CASE != "empty":
        fit("1", 1)
    if CASE == "unsorted":
        kept = rows("1")
        with Path("logs", "1", "metrics.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=["step", "epoch", "batch"])
            writer.writeheader()
            writer.writerows(kept)
    fit(second, 2, None if CASE == "empty" else "last.ckpt")
    scenario.observe(rows=[row for version in sorted({"1", second}) for row in rows(version)])
