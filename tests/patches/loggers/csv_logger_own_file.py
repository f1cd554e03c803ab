"""Two fits, each with a CSVLogger of the same version. Cases: "" (both log the same), ``other`` (the second logs
another metric), ``next`` (no version is given)."""

from _expect import bug, same

MESSAGE = "dict contains fields not in fieldnames"


def sorted_rows(observations):
    """Return the rows with sorted columns: 2.1.0 and 2.1.1 write them in the order of a set."""
    return [
        {version: [sorted(row.split(",")) for row in rows] for version, rows in seen.get("files", {}).items()}
        for seen in observations
    ]


EXPECT = [
    bug(stock=lambda seen: len(seen.get("files", {}).get("mine", ())) == 5, compare=sorted_rows),
    bug("other", stock=MESSAGE, compare=sorted_rows),
    same("next", "other version writes another file", lambda seen: len(seen["files"]) == 2, toggle="all", on="2.2.0"),
]

from pathlib import Path

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader


class Model(Linear):
    features = 1

    def __init__(self, metric):
        super().__init__()
        self.metric = metric

    def training_step(self, batch, batch_idx):
        self.log(self.metric, float(batch_idx))
        return self.layer(batch).sum()


if __name__ == "__main__":
    for metric in ("loss", "other" if scenario.CASE == "other" else "loss"):
        version = None if scenario.CASE == "next" else "mine"
        logger = scenario.pl.loggers.CSVLogger(".", version=version)
        with scenario.observing_errors():
            trainer = scenario.trainer(logger=logger, max_epochs=1, log_every_n_steps=1)
            trainer.fit(Model(metric), DataLoader(torch.ones(2, 1)))
    files = {str(path.parent.name): path.read_text().split() for path in Path().rglob("metrics.csv")}
    scenario.observe(files=files)
