"""Values that ThroughputMonitor logs in a training. Cases: ``varying`` (the last batch is short), ``validation``
(within each epoch, after batches that take time), ``lengths`` (``varying``, and with ``length_fn``), ``even`` (batches
of one size, validated after each epoch), ``evaluation`` (validated by the Trainer twice)."""

from _expect import bug, patched, same

TRAINED = [["train", batches, 2 * batches] for batches in range(1, 25)]
# Nine batches in each epoch, the last of a single sample, 17 in all.
VARYING = [["train", batches, 2 * batches - batches // 9] for batches in range(1, 28)]


def _right(seen):
    return seen["training_alone_is_timed"] and [one for one in seen["logged"] if one[0] == "train"] == (
        TRAINED if seen["steps"] == 24 else VARYING
    )


INCREASE = "ValueError: Expected the value to increase, last: "


def in_stage(stage, logged):
    return [one for one in logged if one[0] == stage]


EXPECT = [
    bug("varying", stock=INCREASE, patched=_right, since="2.2.0"),
    bug("validation", stock=INCREASE, patched=_right, since="2.2.0"),
    bug(
        "lengths", stock=INCREASE, patched=lambda seen: seen["logged"][-1] == ["train", 27, 51, 51 * 32], since="2.2.0"
    ),
    same(
        "evaluation",
        "batches of an evaluation are counted as on stock",
        {"logged": [["validate", batches, 3 * batches] for batches in range(1, 5)]},
        compare="logged",
        alone=True,
        on=("2.2.0", "2.5.6"),
    ),
    same(
        "even",
        "batches of equal size are counted as on stock",
        lambda seen: in_stage("train", seen["logged"]) == TRAINED,
        compare=lambda ranks: in_stage("train", ranks[0]["logged"]),
        alone=True,
        on=("2.2.0", "2.5.6"),
    ),
    # As since 2.6.0.
    patched(
        "even",
        "counts begin at 0 in each validation within fit",
        lambda seen: in_stage("validate", seen["logged"]) == 3 * [["validate", 1, 3], ["validate", 2, 6]],
        alone=True,
        on=("2.2.0", "2.5.6"),
    ),
]

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
