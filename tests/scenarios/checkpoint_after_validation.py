"""PR 21106, issues 20185, 17417: checkpoints every so many steps, by a metric of the validation.

The metric says the step that it was measured at, but for step 4, the best of all. Cases: ``epoch`` (validation at the
end of each epoch, all defaults), ``interval`` (validation every two steps), each also ``..._recommended`` (no
``every_n_train_steps``); ``explicit`` (``save_on_train_epoch_end=False``), ``before`` (a save before there is a
metric), ``uneven`` (validations between the saves), ``last`` (with ``save_last``), ``accumulated`` (two batches per
step), ``clock`` (``train_time_interval``), ``ranks`` (the same in two ranks), ``train_metric``, ``misspelled``,
``subclass`` (with an ``on_validation_end`` of its own), ``manual`` (manual optimization that keeps the weights from
before its step).

Where nothing is to change: ``train_fails`` (a training metric, and the validation fails), ``fails``, ``interrupted``
(the validation after a save fails), ``upload`` (a subclass uses the file at once), ``average`` (other weights during
validation), ``average_callback`` (the same by a callback), ``resumed`` (the hooks of a fit from the
end of the first epoch).
"""

import datetime
import os
from pathlib import Path

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

pl = scenario.pytorch()
ModelCheckpoint = scenario.pytorch("callbacks").ModelCheckpoint
OUT = Path(os.environ.get("SCENARIO_OUT", "."))
CASE = scenario.CASE.partition("_recommended")[0]
IN_EPOCH = {"val_check_interval": 2}


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = CASE != "manual"
        self.layer = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(self.layer.weight)

    def training_step(self, batch, batch_idx):
        if CASE == "train_metric":
            self.log("score", float(batch_idx), on_step=False, on_epoch=True)
        if CASE == "train_fails":
            self.log("score", float(batch_idx))
        loss = self.layer(batch).sum()
        if self.automatic_optimization:
            return loss
        self.saved_models = {0: {name: value.detach().clone() for name, value in self.layer.state_dict().items()}}
        self.manual_backward(loss)
        self.optimizers().step()
        self.optimizers().zero_grad()
        return None

    def validation_step(self, batch, batch_idx):
        if CASE in ("fails", "train_fails", "interrupted") and self.global_step >= 4:
            raise KeyboardInterrupt if CASE == "interrupted" else ZeroDivisionError
        if not CASE.startswith("train_"):
            self.log("score", 100.0 if self.global_step == 4 else float(self.global_step))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)


class Subclass(ModelCheckpoint):
    def on_validation_end(self, trainer, pl_module):
        pass


class Upload(ModelCheckpoint):
    uploaded: list = []

    def on_train_batch_end(self, trainer, *args):
        super().on_train_batch_end(trainer, *args)
        if trainer.global_step % 2 == 0:
            self.uploaded.append([trainer.global_step, os.path.basename(self.best_model_path)])


class Averaged(Model):
    def on_validation_start(self):
        self.own = self.layer.weight.detach().clone()
        self.layer.weight.data.fill_(0.5)

    def on_validation_end(self):
        self.layer.weight.data.copy_(self.own)


class Averaging(scenario.pytorch("callbacks").Callback):
    def on_validation_epoch_start(self, trainer, pl_module):
        Averaged.on_validation_start(pl_module)

    def on_validation_end(self, trainer, pl_module):
        Averaged.on_validation_end(pl_module)


OPTIONS = {
    "epoch": ({"every_n_train_steps": 4}, {}),
    "interval": ({"every_n_train_steps": 2}, IN_EPOCH),
    "explicit": ({"every_n_train_steps": 4, "save_on_train_epoch_end": False}, {}),
    "before": ({"every_n_train_steps": 3, "save_on_train_epoch_end": False}, {}),
    "uneven": ({"every_n_train_steps": 2}, {"val_check_interval": 3}),
    "last": ({"every_n_train_steps": 2, "save_last": True}, IN_EPOCH),
    "accumulated": ({"every_n_train_steps": 1}, {"accumulate_grad_batches": 2, **IN_EPOCH}),
    "clock": ({"train_time_interval": datetime.timedelta(microseconds=1)}, IN_EPOCH),
    "ranks": (
        {"train_time_interval": datetime.timedelta(microseconds=1)},
        {"devices": 2, "strategy": "ddp", **IN_EPOCH},
    ),
    "train_metric": ({"every_n_train_steps": 3}, {}),
    "misspelled": ({"every_n_train_steps": 3, "monitor": "scores"}, {}),
    "subclass": ({"every_n_train_steps": 2}, IN_EPOCH),
    "train_fails": ({"every_n_train_steps": 2, "save_last": True}, IN_EPOCH),
    "fails": ({"every_n_train_steps": 2, "save_last": True}, IN_EPOCH),
    "interrupted": ({"every_n_train_steps": 2}, IN_EPOCH),
    "upload": ({"every_n_train_steps": 2}, IN_EPOCH),
    "resumed": ({"every_n_train_steps": 4}, {}),
    "average": ({"every_n_train_steps": 2}, IN_EPOCH),
    "average_callback": ({"every_n_train_steps": 2}, IN_EPOCH),
    "manual": ({"every_n_train_steps": 2}, IN_EPOCH),
}


def fit(directory, keep):
    saving, training = OPTIONS[CASE]
    if scenario.CASE != CASE:
        saving = {}
    kind = {"subclass": Subclass, "upload": Upload}.get(CASE, ModelCheckpoint)
    options = {"monitor": "score", "mode": "max", "filename": "{step}-{score:.0f}", "save_top_k": keep, **saving}
    callback = kind(dirpath=str(OUT / directory), **options)
    trainer = scenario.trainer(
        enable_checkpointing=True,
        callbacks=[callback, *([Averaging()] if CASE == "average_callback" else [])],
        max_epochs=2,
        num_sanity_val_steps=1,
        accelerator="cpu",
        **training,
    )
    model = Averaged() if CASE == "average" else Model()
    try:
        trainer.fit(model, DataLoader(torch.ones(4 * trainer.world_size, 1)), DataLoader(torch.ones(2, 1)))
    except (ZeroDivisionError, SystemExit) as error:  # newer releases end the program after an interrupt
        scenario.observe(ended=type(error).__name__ if CASE != "interrupted" else "interrupted")
    return callback


class Ends(scenario.pytorch("callbacks").Callback):
    def __init__(self):
        self.ended = []

    def on_train_epoch_end(self, trainer, pl_module):
        self.ended.append(trainer.current_epoch)


def resume():
    """Epochs that end in a fit of two epochs that goes on from the end of the first one."""
    ends = Ends()
    trainer = scenario.trainer(callbacks=[ends], max_epochs=2, accelerator="cpu")
    first = min((OUT / "all").iterdir())
    trainer.fit(Model(), DataLoader(torch.ones(4, 1)), DataLoader(torch.ones(2, 1)), ckpt_path=str(first))
    return ends.ended


def saved(directory):
    """File -> optimizer steps and weight in it."""
    found = {}
    for path in sorted((OUT / directory).iterdir()):
        content = torch.load(path, weights_only=False)
        found[path.stem] = [content["global_step"], float(content["state_dict"]["layer.weight"])]
    return found


if __name__ == "__main__":
    with scenario.observing_errors():
        fit("all", keep=-1)
    scenario.observe(files=saved("all"))
    if CASE == "resumed":
        scenario.observe(ended=resume())
    best = fit("best", keep=1)
    scenario.observe(uploaded=getattr(best, "uploaded", None))
    scenario.observe(best=Path(best.best_model_path).stem, score=best.best_model_score, kept=saved("best"))
