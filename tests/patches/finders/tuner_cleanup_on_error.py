"""PR 21162: the state after a failed learning rate or batch size search.

Cases:
    lr_find, scale_batch_size  the Tuner's methods, ended by an error in ``training_step``; then a normal fit
    lr_callback                the same, with the LearningRateFinder callback
    validate_callback          the BatchSizeFinder callback in ``trainer.validate``
    interrupt_lr, interrupt_batch_size  ended by a ``BaseException``
    lr_loader, batch_size_loader  the error also breaks the DataLoader, which raises when it is read again
    class_batch_size           the model's class has a batch size, too
    one_rank                   two ranks, of which only rank 1 fails; its error has 20 s to arrive
    own_limit                  a search that succeeds, with a Trainer whose test limit cannot be read
    no_search                  no search: the reference for the others
"""

from typing import Any

from _expect import bug, fixed, same, same_calls


def _left_behind(observations):
    """Return the changes that a failed search left, and its error."""
    return [{name: rank[name] for name in ("error", "changed", "weights_changed", "files")} for rank in observations]


def _as_before(observations):
    """Return the expected result: the state before the search, and the error of the user's step."""
    nothing: dict[str, Any] = {"changed": {}, "weights_changed": [], "files": []}
    return [{"error": "ValueError: the step broke", **nothing} for _ in observations]


EXPECT = [
    bug(
        ["lr_find", "scale_batch_size"],
        stock=lambda seen: bool(seen["changed"]),
        compare=_left_behind,
        compare_like=_as_before,
    ),
    # Its suggestion, and the rates and weights of the following fit, are unchanged.
    same(
        ["tuner", "callback"],
        "successful search is unchanged",
        lambda seen: bool(seen["rates"]),
        alone=True,
        program="lr_finder_applies_lr",
        on=("2.2.5", "2.6.6"),
    ),
    same("own_limit", "search succeeds when a property of the trainer raises", alone=True),
    same_calls("asked_rate", "attribute that the finder does not read is not read"),
    same_calls("traced", "model with a traced part is searched"),
    # Stock has removed them by then. Checkpoints that they save have the weights from before the search.
    fixed(
        "",
        "callbacks receive the error of a search",
        stock={"told": [], "saved": None},
        patched={"told": ["ValueError: the step broke"], "saved": "the initial weights"},
        alone=True,
        program="finder_on_exception",
        on=("2.0.9", "2.5.2", "2.6.6"),
    ),
]

import os
import threading
from pathlib import Path

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = "batch_size" in scenario.CASE or scenario.CASE == "validate_callback"


def give_up():
    scenario.observe(error="none arrived")
    os._exit(3)


watchdog = threading.Timer(20, give_up)


class Stop(BaseException):
    pass


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.save_hyperparameters({"lr": 0.125, "batch_size": 4})
        self.layer = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Dropout(0.0))
        self.fails, self.broken, self.steps, self.validations = False, False, 0, 0

    def _step(self, batch, batch_idx):
        if self.fails and batch_idx == 2 and (scenario.CASE != "one_rank" or self.global_rank == 1):
            if scenario.CASE == "one_rank":
                watchdog.start()
            self.broken = scenario.CASE.endswith("_loader")
            raise Stop("interrupted") if scenario.CASE.startswith("interrupt") else ValueError("the step broke")
        return self.layer(batch[0]).pow(2).mean()

    def training_step(self, batch, batch_idx):
        self.steps += 1
        return self._step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        self.validations += 1
        self._step(batch, batch_idx)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)


if scenario.CASE == "class_batch_size":
    Model.batch_size = 4


class Data(scenario.pl.LightningDataModule):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def train_dataloader(self):
        if self.model.broken:
            raise OSError("the data is gone")
        data = torch.arange(256.0).reshape(64, 4) / 256
        return DataLoader(TensorDataset(data), batch_size=self.model.hparams.batch_size)

    val_dataloader = train_dataloader


def settings(trainer, model):
    stages = ("train", "val", "predict", *(["test"] if scenario.CASE != "own_limit" else []))
    return {
        "callbacks": [type(each).__name__ for each in trainer.callbacks],
        "loggers": [type(each).__name__ for each in trainer.loggers],
        "limits": [getattr(trainer, f"limit_{stage}_batches") for stage in stages],
        "max_steps": trainer.max_steps,
        "progress": [trainer.current_epoch, trainer.global_step],
        "restarting": [trainer.fit_loop.restarting, trainer.fit_loop.epoch_loop.restarting],
        "hparams": {**model.hparams, "of the class": getattr(model, "batch_size", None)},
        "training": [module.training for module in model.modules()],
        "progress bar enabled": getattr(trainer.progress_bar_callback, "is_enabled", None),
    }


def temporary_checkpoints(trainer):
    return sorted(path.name.partition("-")[0] for path in Path(trainer.default_root_dir).glob(".*.ckpt"))


if __name__ == "__main__":
    scenario.pl.seed_everything(7)
    model = Model()
    data = Data(model)
    callbacks = scenario.pytorch("callbacks")
    finders = {
        "lr_callback": [callbacks.LearningRateFinder(num_training_steps=12)],
        "one_rank": [callbacks.LearningRateFinder(num_training_steps=12)],
        "validate_callback": [callbacks.BatchSizeFinder(steps_per_trial=5)],
    }.get(scenario.CASE, [])
    Path("logs").mkdir(exist_ok=True)
    trainer = scenario.trainer(
        max_epochs=2,
        limit_train_batches=7,
        limit_val_batches=6,
        num_sanity_val_steps=0,
        strategy="ddp" if scenario.CASE == "one_rank" else "auto",
        devices=2 if scenario.CASE == "one_rank" else 1,
        callbacks=finders,
        logger=scenario.pl.loggers.CSVLogger("logs"),
        enable_progress_bar=True,
    )
    if scenario.CASE == "own_limit":
        type(trainer).limit_test_batches = property(lambda self: 1 / 0)
    before = settings(trainer, model)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    model.fails = scenario.CASE not in ("no_search", "own_limit")
    context = None
    tuner = scenario.tuner(trainer)
    try:
        with scenario.observing_errors():
            if scenario.CASE in ("lr_callback", "one_rank"):
                trainer.fit(model, datamodule=data)
            elif scenario.CASE == "validate_callback":
                trainer.validate(model, datamodule=data)
            elif BATCH_SIZE:
                tuner.scale_batch_size(model, datamodule=data, steps_per_trial=5)
            elif scenario.CASE != "no_search":
                tuner.lr_find(model, datamodule=data, num_training=12)
    except (Exception, Stop) as error:
        watchdog.cancel()
        scenario.observe(files=temporary_checkpoints(trainer))
        if scenario.CASE == "one_rank":
            raise
        context = type(error.__context__).__name__ if error.__context__ else None
    after = settings(trainer, model)
    scenario.observe(
        context=context,
        changed={name: after[name] for name in after if after[name] != before[name]},
        weights_changed=[name for name, value in model.state_dict().items() if not value.equal(weights[name])],
        momentum=[len(state) for optimizer in trainer.optimizers for state in optimizer.state.values()],
        learning_rates=[group["lr"] for optimizer in trainer.optimizers for group in optimizer.param_groups],
        files=temporary_checkpoints(trainer),
    )
    # The user fixes the step and trains with the same trainer.
    model.fails = model.broken = False
    model.steps = model.validations = 0
    trainer.callbacks = [each for each in trainer.callbacks if each not in finders]
    try:
        trainer.fit(model, datamodule=data)
    except Exception as error:
        scenario.observe(fit_error=f"{type(error).__name__}: {error}")
        raise
    scenario.observe(
        fit=[model.steps, model.validations, trainer.current_epoch, trainer.global_step],
        final=dict(model.state_dict()),
        ckpt_path=trainer.ckpt_path,
    )
