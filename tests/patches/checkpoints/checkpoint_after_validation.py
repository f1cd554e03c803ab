"""PR 21106, issues 20185, 17417: checkpoints every few steps, ranked by a validation metric.

The metric is the number of its step, except at step 4, which is the best.

Cases: ``interval`` (validation every two steps), also ``interval_recommended`` (no ``every_n_train_steps``);
``explicit`` (``save_on_train_epoch_end=False``), ``before`` (a save before there is a metric), ``uneven``
(validations between the saves), ``last`` (with ``save_last``), ``accumulated`` (two batches per step), ``ranks`` (in
two ranks), ``misspelled``.

Cases without a change: ``epoch`` (validation at the end of each epoch, all defaults), ``clock``
(``train_time_interval``), ``train_metric``, ``subclass`` (overrides ``on_validation_end``), ``upload`` (a
subclass uses the file at once).
"""

from _expect import bug, fixed, same, whole_run

STALE, BEST = "step=6-score=100", "step=4-score=100"


def _names(steps):
    return {f"step={step}-score={score}" for step, score in steps.items()}


def saves(steps, *others):
    """Return a check of the files that are named by the step and the metric of their validation."""
    return lambda seen: {*seen["files"]} == {*_names(steps), *others}


WAITED = {2: 2, 4: 100, 6: 6, 8: 8}
RANK = {"files": {f"step={step}-score={score}": [step, float(-step)] for step, score in WAITED.items()}, "best": BEST}


EXPECT = [
    bug(["explicit", "before"], stock=lambda seen: seen["best"] != BEST, patched={"best": BEST}),
    # The validation is within the epoch, where 2.5.5 and later still save with the metric of the previous one.
    fixed(
        "interval",
        "checkpoint has the metric of its step",
        stock=lambda seen: STALE in seen["files"],
        patched={"best": BEST},
        like="interval_recommended",
        alone=True,
        on=("2.0.0", "2.5.4"),
    ),
    same(
        ["epoch", "clock", "train_metric", "subclass", "upload"],
        "other checkpoints are unchanged",
        alone=True,
        on=("2.0.0", "2.2.5"),
    ),
    same("misspelled", "misspelled metric is still an error", "could not find the monitored key", alone=True),
    # Validations at steps 3 and 7; saves at steps 4, 6 and 8, and at step 3 the save that waited for the metric.
    fixed(
        "uneven",
        "save is not lost if no validation follows",
        stock=saves({4: 3, 6: 3, 8: 7}),
        patched=saves({3: 3, 4: 3, 6: 3, 8: 7}),
        alone=True,
    ),
    fixed("last", "save of the last checkpoint waits for the validation", patched=saves(WAITED, "last"), alone=True),
    fixed(
        "accumulated",
        "save with accumulation waits for the validation",
        patched=saves({1: 1, 2: 2, 3: 3, 4: 100}),
        alone=True,
    ),
    fixed(
        "ranks",
        "ranks defer the same saves",
        stock=whole_run(lambda result: all(STALE in rank["files"] for rank in result.observations)),
        patched=[RANK, RANK],
        alone=True,
    ),
]

import datetime
import os
from pathlib import Path

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

ModelCheckpoint = scenario.pl.callbacks.ModelCheckpoint
OUT = Path()
CASE = scenario.CASE.partition("_recommended")[0]
IN_EPOCH = {"val_check_interval": 2}


class Model(Linear):
    features, bias, weight, lr = 1, False, 0.0, 1.0

    def training_step(self, batch, batch_idx):
        if CASE == "train_metric":
            self.log("score", float(batch_idx), on_step=False, on_epoch=True)
        return self.layer(batch).sum()

    def validation_step(self, batch, batch_idx):
        if CASE != "train_metric":
            self.log("score", 100.0 if self.global_step == 4 else float(self.global_step))


class Subclass(ModelCheckpoint):
    def on_validation_end(self, trainer, pl_module):
        pass


class Upload(ModelCheckpoint):
    uploaded: list = []

    def on_train_batch_end(self, trainer, *args):
        super().on_train_batch_end(trainer, *args)
        if trainer.global_step % 2 == 0:
            self.uploaded.append([trainer.global_step, os.path.basename(self.best_model_path)])


OPTIONS = {
    "epoch": ({"every_n_train_steps": 4}, {}),
    "interval": ({"every_n_train_steps": 2}, IN_EPOCH),
    "explicit": ({"every_n_train_steps": 4, "save_on_train_epoch_end": False}, {}),
    "before": ({"every_n_train_steps": 3, "save_on_train_epoch_end": False}, {}),
    "uneven": ({"every_n_train_steps": 2}, {"val_check_interval": 3}),
    "last": ({"every_n_train_steps": 2, "save_last": True}, IN_EPOCH),
    "accumulated": ({"every_n_train_steps": 1}, {"accumulate_grad_batches": 2, **IN_EPOCH}),
    "clock": ({"train_time_interval": datetime.timedelta(microseconds=1)}, IN_EPOCH),
    "ranks": ({"every_n_train_steps": 2}, {"devices": 2, "strategy": "ddp", **IN_EPOCH}),
    "train_metric": ({"every_n_train_steps": 3, "save_on_train_epoch_end": False}, {}),
    "misspelled": ({"every_n_train_steps": 3, "save_on_train_epoch_end": False, "monitor": "scores"}, {}),
    "subclass": ({"every_n_train_steps": 2}, IN_EPOCH),
    "upload": ({"every_n_train_steps": 2}, IN_EPOCH),
}


def fit(directory, keep):
    saving, training = OPTIONS[CASE]
    if scenario.CASE != CASE:
        saving = {}
    kind = {"subclass": Subclass, "upload": Upload}.get(CASE, ModelCheckpoint)
    options = {"monitor": "score", "mode": "max", "filename": "{step}-{score:.0f}", "save_top_k": keep, **saving}
    callback = kind(dirpath=str(OUT / directory), **options)
    trainer = scenario.trainer(callbacks=callback, max_epochs=2, num_sanity_val_steps=1, **training)
    trainer.fit(Model(), DataLoader(torch.ones(4 * trainer.world_size, 1)), DataLoader(torch.ones(2, 1)))
    return callback


def saved(directory):
    """Return the number of optimizer steps and the weight in each file."""
    found = {}
    for path in sorted((OUT / directory).iterdir()):
        content = torch.load(path, weights_only=False)
        found[path.stem] = [content["global_step"], float(content["state_dict"]["layer.weight"])]
    return found


if __name__ == "__main__":
    with scenario.observing_errors():
        fit("all", keep=-1)
    scenario.observe(files=saved("all"))
    best = fit("best", keep=1)
    scenario.observe(uploaded=getattr(best, "uploaded", None))
    scenario.observe(best=Path(best.best_model_path).stem, score=best.best_model_score, kept=saved("best"))
