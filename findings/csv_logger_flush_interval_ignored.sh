#!/usr/bin/env bash
# Guess: CSVLogger(flush_logs_every_n_steps=100) writes metrics.csv once per 100 steps, so a large value makes logging
#   at each step cheap.
# Behavior: with a Trainer the argument changes nothing. Trainer saves the logger each time that it logs metrics, so
#   metrics.csv is written at each logged step, whatever the argument says. It has an effect only if the program calls
#   log_metrics itself.
# Why our users meet it: they raise the interval since training on a network file system is slow, and see no change. The
#   interval that counts is Trainer(log_every_n_steps=...).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH
python3 -m venv env
pip=(env/bin/python -m pip install -qq --disable-pip-version-check)
"${pip[@]}" torch==2.13.0 numpy==2.2.6 packaging==26.0 PyYAML==6.0.3 tqdm==4.67.1 setuptools==80.10.2
"${pip[@]}" --no-deps lightning==2.6.6 lightning-utilities==0.15.3 torchmetrics==1.9.0
cat > program.py <<'PYTHON'
from pathlib import Path

import lightning
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringModel
from lightning.pytorch.loggers import CSVLogger


def rows(logger):
    file = Path(logger.log_dir, "metrics.csv")
    return len(file.read_text().splitlines()) - 1 if file.exists() else 0


class Model(BoringModel):
    def training_step(self, batch, batch_idx):
        seen.append(rows(self.logger))
        loss = super().training_step(batch, batch_idx)["loss"]
        self.log("loss", loss)
        return loss


print(f"torch {torch.__version__}, lightning {lightning.__version__}; rows of metrics.csv before each of 10 steps:")
for interval in (1, 1000):
    seen = []
    logger = CSVLogger("trainer", version=interval, flush_logs_every_n_steps=interval)
    trainer = Trainer(
        accelerator="cpu",
        logger=logger,
        max_steps=10,
        log_every_n_steps=1,
        limit_val_batches=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model())
    print(f"flush_logs_every_n_steps={interval}, Trainer: {seen}")
    assert seen == list(range(10)), seen
logger = CSVLogger("alone", flush_logs_every_n_steps=1000)
seen = []
for step in range(10):
    seen.append(rows(logger))
    logger.log_metrics({"loss": 0.0}, step)
print(f"flush_logs_every_n_steps=1000, without a Trainer: {seen}")
assert seen == [0] * 10, seen
PYTHON
OMP_NUM_THREADS=1 env/bin/python -W ignore program.py 2> errors.txt || { cat errors.txt; exit 1; }
