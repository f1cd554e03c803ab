"""A finder callback in a resumed run: the run starts at epoch 0 again, with a new optimizer.

``epochs`` has the epoch, the batch, the step and the batch size at the start of each epoch of the second run.

Cases: ``lr`` and ``batch`` (LearningRateFinder and BatchSizeFinder), ``lr-without`` and ``batch-without`` (the resumed
run has no finder), ``lr-report`` (the result of the search is read), ``unsaved`` (the batch size is no hyperparameter),
``subclass`` (a finder that does not search when resumed), ``tuner`` (Tuner.lr_find of a Trainer whose ckpt_path is
set), ``fresh`` (not resumed).
"""

from _expect import bug, fixed, same


def _restarts(seen):
    return [start[:2] for start in seen["epochs"][-3:]] == [[0, 0], [1, 0], [2, 0]]


def _continues(seen):
    return [start[0] for start in seen["epochs"]] == [2] and seen["epochs"][0][3] == seen["size"]


def _continues_with_a_warning(seen):
    (warning,) = seen["warnings"]
    resumed = [start[0] for start in seen["epochs"]] == [2] and seen["epochs"][0][3] == 2
    return resumed and "the checkpoint has no hyperparameter 'batch_size'" in warning


EXPECT = [
    bug(["lr", "batch"], stock=_restarts, patched=_continues, like="{}-without", alone=True),
    same(["subclass", "tuner", "fresh"], "subclass, tuner and new run are unchanged"),
    same("lr-report", "rates of the search can be read after a resume", {"rates": 20}, compare="rates"),
    fixed(
        "unsaved",
        "batch size that is not in the checkpoint causes a warning",
        stock=lambda seen: seen["epochs"][0][:2] == [0, 0],
        patched=_continues_with_a_warning,
        on=("2.2.5", "2.6.6"),
    ),
]

from pathlib import Path

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

callbacks = scenario.pytorch("callbacks")
CASE = scenario.CASE
KIND = CASE.partition("-")[0]
OUT = Path.cwd()
X = torch.randn(64, 4, generator=torch.Generator().manual_seed(1))


class Model(scenario.pl.LightningModule):
    def __init__(self, lr=0.1, batch_size=2):
        super().__init__()
        if CASE == "unsaved":
            self.lr, self.batch_size = lr, batch_size
        else:
            self.save_hyperparameters()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(4, 2)
        self.seen = []

    def training_step(self, batch, batch_idx):
        self.seen.append((self.current_epoch, batch_idx, self.global_step, len(batch)))
        return (self.layer(batch) - 1).pow(2).mean()

    def configure_optimizers(self):
        lr = self.lr if CASE == "unsaved" else self.hparams.lr
        return torch.optim.Adam(self.parameters(), lr=lr)

    def train_dataloader(self):
        return DataLoader(X, batch_size=self.batch_size if CASE == "unsaved" else self.hparams.batch_size)


class Resumable(callbacks.LearningRateFinder):
    def on_fit_start(self, trainer, pl_module):
        if trainer.ckpt_path is None:
            super().on_fit_start(trainer, pl_module)


def finder():
    if KIND in ("batch", "unsaved"):
        return callbacks.BatchSizeFinder(steps_per_trial=1, max_trials=3, init_val=1)
    return (Resumable if CASE == "subclass" else callbacks.LearningRateFinder)(num_training_steps=20)


def trainer(*added):
    saving = callbacks.ModelCheckpoint(str(OUT / "checkpoints"), filename="{epoch}", save_top_k=-1)
    return scenario.trainer(max_epochs=3, callbacks=[*added, saving], limit_val_batches=0)


if __name__ == "__main__":
    first = Model()
    trainer(finder()).fit(first)
    size = first.batch_size if CASE == "unsaved" else first.hparams.batch_size
    second = Model(batch_size=size) if CASE == "batch-without" else Model()
    again = finder()
    resumed = trainer(*([] if CASE.endswith("-without") else [again]))
    path = str(OUT / "checkpoints" / "epoch=1.ckpt")
    with scenario.observing_warnings():
        if CASE == "tuner":
            resumed = trainer()
            resumed.ckpt_path = path
            found = scenario.pytorch("tuner").Tuner(resumed).lr_find(second, num_training=20)
            scenario.observe(lrs=found.results["lr"])
        else:
            resumed.fit(second, ckpt_path=None if CASE == "fresh" else path)
    scenario.observe(
        size=size,
        epochs=[each for each in second.seen if each[1] == 0],
        steps=len(second.seen),
        rates=len(again.optimal_lr.results["lr"]) if CASE == "lr-report" else None,
        lr=resumed.optimizers[0].param_groups[0]["lr"] if resumed.optimizers else None,
        weight=second.layer.weight,
    )
