"""A training with each of Lightning's callbacks, which a second process resumes from its checkpoint.

LearningRateFinder is left out: a default patch fixes it. DeviceStatsMonitor logs other numbers in each run.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch

from tests.differential.observing import pl, tensors_of
from tests.differential.programs.workarounds import QUIET, Model, Numbers

CALLBACKS: dict[str, dict[str, Any]] = {
    "BatchSizeFinder": {"max_trials": 1, "steps_per_trial": 1},
    "EarlyStopping": {"monitor": "val_loss", "patience": 9},
    "EMAWeightAveraging": {},
    "GradientAccumulationScheduler": {"scheduling": {0: 1, 1: 2}},
    "LambdaCallback": {"state_dict": lambda: {"own": 1}},
    "LearningRateMonitor": {},
    "ModelCheckpoint": {"monitor": "loss", "filename": "second"},
    "ModelPruning": {"pruning_fn": "l1_unstructured", "amount": 0.5},
    "OnExceptionCheckpoint": {"dirpath": "."},
    "StochasticWeightAveraging": {"swa_lrs": 0.05, "swa_epoch_start": 1},
    "Timer": {"duration": timedelta(hours=1)},
}


class Sized(Model):
    batch_size = 2

    def train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(Numbers(8), self.batch_size)

    def val_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(Numbers(2))


def every_callback(observe: Any, process: int) -> None:
    for name, arguments in CALLBACKS.items():
        try:
            callback = getattr(pl.callbacks, name)(**arguments)
        except (AttributeError, TypeError) as error:  # other releases have it
            observe(name, error)
            continue
        kept = pl.callbacks.ModelCheckpoint(name, monitor="val_loss", filename="{epoch}", save_last=True)
        model = Sized()
        logger = pl.loggers.CSVLogger(f"{name}/{process}")
        tr = pl.Trainer(**QUIET, max_epochs=2 * process, callbacks=[callback, kept], logger=logger, log_every_n_steps=1)
        try:
            tr.fit(model, ckpt_path=f"{name}/last.ckpt" if process == 2 else None)
        except Exception as error:
            observe(f"{name} ends", error)
        observe(name, [tr.global_step, dict(tr.callback_metrics), list(tensors_of(model))])
