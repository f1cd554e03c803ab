"""Values that ThroughputMonitor logs in a training. Cases: ``varying`` (the last batch is short), ``validation``
(within each epoch, after batches that take time), ``lengths`` (``varying``, and with ``length_fn``), ``even`` (batches
of one size, validated after each epoch), ``evaluation`` (validated by the Trainer twice)."""

import time

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

CASE = scenario.CASE
LOGGED, TIMES = [], []
PAUSE = 0.02


class Logger(scenario.pytorch("loggers.logger").DummyLogger):
    def log_metrics(self, metrics, step=None):
        for stage in ("train", "validate"):
            if f"{stage}/batches" in metrics:
                names = [name for name in ("batches", "samples", "lengths") if f"{stage}/{name}" in metrics]
                LOGGED.append([stage, *(metrics[f"{stage}/{name}"] for name in names)])
        if "train/time" in metrics:
            TIMES.append(metrics["train/time"])


class Model(scenario.BoringModel):
    flops_per_batch = 1

    def training_step(self, batch, batch_idx):
        time.sleep(PAUSE / 10)
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        time.sleep(PAUSE)
        return super().validation_step(batch, batch_idx)


if __name__ == "__main__":
    lengths = {"length_fn": lambda batch: batch.numel()} if CASE == "lengths" else {}
    monitor = scenario.pl.callbacks.ThroughputMonitor(batch_size_fn=len, window_size=4, **lengths)
    trainer = scenario.trainer(
        max_epochs=3,
        log_every_n_steps=1,
        logger=Logger(),
        callbacks=[monitor],
        num_sanity_val_steps=1,
        val_check_interval=2 if CASE == "validation" else None,
        limit_val_batches=0 if CASE in ("varying", "lengths") else 1.0,
    )
    data = torch.ones(17 if CASE in ("varying", "lengths") else 16, 32)
    loaders = DataLoader(data, batch_size=2), DataLoader(data[:6], batch_size=3)
    began = time.perf_counter()
    with scenario.observing_errors():
        if CASE == "evaluation":
            for _ in range(2):
                trainer.validate(Model(), loaders[1], verbose=False)
        else:
            trainer.fit(Model(), *loaders)
    validated = PAUSE * sum(entry[0] == "validate" for entry in LOGGED)
    most = time.perf_counter() - began - validated
    scenario.observe(
        steps=trainer.global_step, logged=LOGGED, training_alone_is_timed=all(0 < one < most for one in TIMES)
    )
