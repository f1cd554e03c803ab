"""PR 20379: the number of steps of a run that is resumed from a checkpoint.

Two epochs of four batches. Cases: the position of the checkpoint, ``batch`` (the second of an epoch), ``last_batch``,
``validation`` (after the second batch) or ``epoch``; ``whole`` is the uninterrupted run.
"""

import os
from pathlib import Path

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

pl = scenario.pytorch()
OUT = Path(os.environ.get("SCENARIO_OUT", "."))
CASE = scenario.CASE


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(self.layer.weight)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def validation_step(self, batch, batch_idx):
        pass

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)


def fit(callbacks, resume=None):
    trainer = scenario.trainer(
        enable_checkpointing=bool(callbacks),
        callbacks=callbacks,
        max_epochs=2,
        accelerator="cpu",
        val_check_interval=2 if CASE == "validation" else 4,
    )
    trainer.fit(Model(), DataLoader(torch.ones(4, 1)), DataLoader(torch.ones(1, 1)), ckpt_path=resume)
    return trainer


if __name__ == "__main__":
    options = {"every_n_train_steps": 2} if "batch" in CASE else {}
    callback = scenario.pytorch("callbacks").ModelCheckpoint(
        dirpath=str(OUT / "saved"), filename="{step}", save_top_k=-1, **options
    )
    trainer = fit([callback])
    if CASE != "whole":
        step = 2 if CASE in ("batch", "validation") else 4
        with scenario.observing_warnings():
            trainer = fit([], resume=str(OUT / "saved" / f"step={step}.ckpt"))
    scenario.observe(steps=trainer.global_step, weight=trainer.model.layer.weight)
