"""CSVLogger writes hparams.yaml with every line of metrics."""

from _expect import bug, same

TEXT = "rate: 0.1\nwidths:\n- 1\n- 2\n"

EXPECT = [
    bug(stock={"often": True, "text": TEXT}, patched={"often": False, "text": TEXT}),
    *[
        same(
            case,
            "changed hyperparameters are written",
            {"text": text},
            compare="text",
            on=("1.8.6", "2.0.0", "2.5.0.post0"),
        )
        for case, text in {
            "changed": f"{TEXT}- 3\n",
            "signed": TEXT.replace("0.1", "-0.0"),
            "named": TEXT,
            "moved": TEXT,
        }.items()
    ],
]

import os
import time
from pathlib import Path

import _scenario as scenario


class Seen(scenario.pl.Callback):
    def __init__(self, file):
        self.file, self.times = file, set()

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        time.sleep(0.02)
        if self.file.exists():
            self.times.add(self.file.stat().st_mtime_ns)
        if scenario.CASE == "changed" and batch_idx == 4:
            trainer.logger.experiment.hparams["widths"].append(3)
        if scenario.CASE == "signed" and batch_idx == 4:
            trainer.logger.experiment.hparams["rate"] = -0.0
        if scenario.CASE == "named" and batch_idx == 4:
            trainer.logger.experiment.NAME_HPARAMS_FILE = "other.yaml"
            self.file = self.file.with_name("other.yaml")
        if scenario.CASE == "moved" and batch_idx == 4:
            trainer.logger.experiment.log_dir = str(self.file.parent.parent)
            self.file = self.file.parent.parent / self.file.name


class Model(scenario.BoringModel):
    def __init__(self, rate, widths):
        super().__init__()
        self.save_hyperparameters()

    def training_step(self, batch, batch_idx):
        self.log("index", float(batch_idx))
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    out = os.getcwd()
    logger = scenario.pl.loggers.CSVLogger(out, name="run", version=0)
    seen = Seen(Path(out, "run", "version_0", "hparams.yaml"))
    scenario.trainer(max_steps=8, limit_val_batches=0, log_every_n_steps=1, logger=logger, callbacks=seen).fit(
        Model(0.0 if scenario.CASE == "signed" else 0.1, [1, 2])
    )
    scenario.observe(often=len(seen.times) > 2, text=seen.file.read_text())
