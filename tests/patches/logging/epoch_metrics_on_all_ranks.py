"""Rank zero reduces an epoch's metrics for its progress bar while rank one is in on_train_epoch_end. Two ranks log a
loss with sync_dist; on_train_epoch_end computes a metric of torchmetrics. Cases: ``bar``, ``no-bar``, ``no-hook``
(nothing is computed in the hook), ``own-bar`` (a progress bar of the program), ``single`` (one rank)."""

from _expect import bug, same, whole_run


def _is_right(result):
    """True if both ranks have the mean of both ranks."""
    right = {"metric": [(1.0).hex(), (1.0).hex()], "loss": (3.0).hex()}
    return result.ok and result.observations == [right, right]


EXPECT = [
    bug("bar", stock=whole_run(lambda result: not _is_right(result)), patched=whole_run(_is_right), like="no-bar"),
    same(["no-hook", "own-bar", "single"], "program that needs no fix is unchanged"),
]

import os
import threading

import _scenario as scenario
import torch
import torchmetrics

CASE = scenario.CASE
HANGS = 30
"""Seconds, of which a job that ends takes a few."""


class Bar(scenario.pl.callbacks.ProgressBar):
    def disable(self):
        pass

    enable = disable


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.mean = torchmetrics.MeanMetric()
        self.got = []

    def training_step(self, batch, batch_idx):
        value = torch.tensor(2.0 + 2 * self.global_rank)
        self.log("loss", value, on_step=False, on_epoch=True, prog_bar=True, sync_dist=True)
        self.mean.update(torch.tensor(0.5 + self.global_rank))
        return super().training_step(batch, batch_idx)

    def on_train_epoch_end(self):
        if CASE != "no-hook":
            self.got.append(float(self.mean.compute()))
            self.mean.reset()


def hangs():
    scenario.observe(hangs=True)
    os._exit(3)


if __name__ == "__main__":
    model = Model()
    watch = threading.Timer(HANGS, hangs)
    trainer = scenario.trainer(
        devices=1 if CASE == "single" else 2,
        strategy="auto" if CASE == "single" else "ddp",
        max_epochs=2,
        limit_train_batches=2,
        limit_val_batches=0,
        enable_progress_bar=CASE != "no-bar",
        callbacks=[Bar()] if CASE == "own-bar" else [],
    )
    watch.daemon = True
    watch.start()
    trainer.fit(model)
    watch.cancel()
    scenario.observe(metric=model.got, loss=float(trainer.callback_metrics["loss"]))
