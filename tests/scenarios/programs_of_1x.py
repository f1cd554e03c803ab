"""Typical uses of Lightning 1.x, one per case. The results are compared with 1.9.5.

Cases: ``import``; ``fit`` (a scheduler, checkpoints, resume, loggers, callbacks, bf16, lr_find) and ``fit plain`` (the
same without a scheduler); ``evaluate`` (validate, test, predict); ``ddp`` and ``ddp_spawn``, with two ranks; ``cli``,
``cli scheduler``, ``cli path`` (LightningCLI, which writes its configuration and reads it again); ``objects`` (custom
objects in the run's own checkpoint and in a trusted directory).
"""

import csv
import os
import re
import shutil
import sys
from pathlib import Path

import _model_1x as user
import _scenario as scenario
import torch
from torch.optim import SGD, lr_scheduler
from torch.utils.data import DataLoader

pl, CASE = user.pl, scenario.CASE
OUT = Path()


class Options:
    """A class that torch does not load by default."""

    width = 4


class Counts(pl.Callback):
    def __init__(self):
        self.epochs = self.batches = 0

    def on_train_epoch_end(self, trainer, module):
        self.epochs += 1

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.batches += 1

    def state_dict(self):
        return {"epochs": self.epochs, "batches": self.batches}

    def load_state_dict(self, state):
        vars(self).update(state)


class Model(user.Model):
    def __init__(self, lr: float = 0.1, schedule: bool = True, options: object = None):
        super().__init__(lr)
        self.save_hyperparameters()

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        self.log("epoch_loss", loss, on_step=False, on_epoch=True, prog_bar=True, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val", self.layer(batch).pow(2).mean(), sync_dist=True)

    def test_step(self, batch, batch_idx):
        self.log("test", self.layer(batch).abs().mean())

    def predict_step(self, batch, batch_idx, dataloader_idx=0):
        return self.layer(batch).sum(1)

    def val_dataloader(self):
        return DataLoader(torch.arange(32.0).reshape(8, 4) / 32, batch_size=4)

    test_dataloader = predict_dataloader = val_dataloader

    def configure_optimizers(self):
        optimizer = SGD(self.parameters(), lr=self.lr, momentum=0.5)
        if not self.hparams.schedule:
            return optimizer
        return [optimizer], [lr_scheduler.StepLR(optimizer, 1, gamma=0.5)]

    def on_train_start(self):
        if CASE == "ddp_spawn":  # on CPUs the ranks share memory, and step at the same time
            for one in self.parameters():
                one.data = one.data.clone()

    def on_train_end(self):
        if CASE.startswith("ddp"):
            ranks = torch.distributed.get_world_size()
            scenario.observe(ranks=ranks, metrics=metrics(self.trainer), weight=rounded(self.layer.weight))


def rounded(value, digits=5):
    return [round(one, digits) for one in torch.as_tensor(value).detach().float().flatten().tolist()]


def metrics(trainer, digits=5):
    return {name: rounded(value, digits) for name, value in sorted(trainer.callback_metrics.items())}


def files(directory):
    """Return relative paths. TensorBoard's names contain the time, the host and the process."""
    found = (path.relative_to(directory).as_posix() for path in Path(directory).rglob("*") if path.is_file())
    return sorted(re.sub(r"events\..*", "events", name) for name in found)


def trainer(**options):
    return scenario.trainer(**{"devices": 1, "default_root_dir": str(OUT / "run"), **options})


def checkpoints(directory="checkpoints"):
    return pl.callbacks.ModelCheckpoint(str(OUT / directory), "{epoch}", monitor="val", save_top_k=2, save_last=True)


def fit(schedule):
    counts = Counts()
    first = trainer(
        max_epochs=3,
        gradient_clip_val=0.5,
        accumulate_grad_batches=2,
        log_every_n_steps=1,
        enable_checkpointing=True,
        enable_progress_bar=True,
        enable_model_summary=True,
        logger=[pl.loggers.CSVLogger(str(OUT), "csv"), pl.loggers.TensorBoardLogger(str(OUT), "tensorboard")],
        callbacks=[
            checkpoints(),
            counts,
            pl.callbacks.EarlyStopping("val", patience=2),
            pl.callbacks.LearningRateMonitor("epoch"),
        ],
    )
    first.fit(Model(schedule=schedule))
    with open(next(OUT.rglob("metrics.csv"))) as file:
        rows = list(csv.DictReader(file))
    kept = torch.load(OUT / "checkpoints" / "last.ckpt", weights_only=False)
    scenario.observe(
        fit=metrics(first), lr=user.lr_of(first), counts=counts.state_dict(), csv=[sorted(rows[0]), len(rows)],
        files=files(OUT), keys=sorted(kept), schedulers=len(kept["lr_schedulers"]),
    )  # fmt: skip
    counts, model = Counts(), Model(schedule=schedule)
    resumed = trainer(max_epochs=5, callbacks=[checkpoints("more"), counts], enable_checkpointing=True)
    resumed.fit(model, ckpt_path=str(OUT / "checkpoints" / "last.ckpt"))
    steps = [resumed.current_epoch, resumed.global_step]
    scenario.observe(resumed=metrics(resumed), steps=steps, again=counts.state_dict(), resumed_lr=user.lr_of(resumed))

    half = trainer(max_epochs=1, precision="bf16")
    half.fit(Model(schedule=schedule))
    scenario.observe(bf16=metrics(half, 2))

    averaging = pl.callbacks.StochasticWeightAveraging(swa_epoch_start=1, swa_lrs=0.05, annealing_epochs=1)
    averaged, model = trainer(max_epochs=3, callbacks=[averaging]), Model(schedule=schedule)
    averaged.fit(model)
    scenario.observe(averaged=rounded(model.layer.weight))

    model = Model(lr=0.3, schedule=schedule)
    found = trainer(max_epochs=4).tuner.lr_find(model, min_lr=1e-4, max_lr=1.0, num_training=12)
    scenario.observe(tried=rounded(found.results["lr"]), found=rounded(found.results["loss"]), left=model.lr)


def evaluate():
    model = Model(schedule=False)
    one = trainer(max_epochs=1, enable_checkpointing=True, callbacks=[checkpoints()])
    one.fit(model)
    seen = {
        "validate": rounded(list(one.validate(model)[0].values())),
        "test": rounded(list(one.test(ckpt_path="best")[0].values())),
        "predict": [rounded(batch) for batch in one.predict(model)],
    }
    loaded = Model.load_from_checkpoint(one.checkpoint_callback.best_model_path)
    scenario.observe(**seen, weight=rounded(loaded.layer.weight), hparams=dict(loaded.hparams))


def ranks():
    one = trainer(max_epochs=2, devices=2, strategy=CASE, enable_checkpointing=True, callbacks=[checkpoints()])
    model = Model()
    one.fit(model)
    if scenario.rank() == 0:  # only in the process that has spawned the ranks
        best = Path(one.checkpoint_callback.best_model_path).name
        kept = {"files": files(OUT / "checkpoints"), "best": best}
        scenario.observe(**kept, metrics=metrics(one), weight=rounded(model.layer.weight))


class Bare(pl.LightningModule):
    """A model whose optimizer and scheduler come from the command line."""

    def __init__(self, width: int = 4):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(width, 2)

    training_step, train_dataloader = user.Model.training_step, user.Model.train_dataloader


def command_line():
    try:
        from pytorch_lightning.cli import LightningCLI
    except ImportError:
        from pytorch_lightning.utilities.cli import LightningCLI
    gamma = "--lr_scheduler.gamma=0.5"
    if CASE == "cli path":  # 1.6 accepts a path only as class_path
        gamma = "--lr_scheduler.init_args.gamma=0.5"
    arguments = {
        "cli": ["--model.lr=0.2"],
        "cli scheduler": ["--optimizer=SGD", "--optimizer.lr=0.2", "--lr_scheduler=ExponentialLR", gamma],
        "cli path": [
            "--optimizer.class_path=torch.optim.SGD",
            "--optimizer.init_args.lr=0.2",
            "--lr_scheduler.class_path=torch.optim.lr_scheduler.ExponentialLR",
            gamma,
        ],
    }[CASE]
    model = Model if CASE == "cli" else Bare
    defaults = {"default_root_dir": str(OUT), "enable_progress_bar": False, "max_epochs": 3}
    sys.argv[1:] = ["fit", "--trainer.max_epochs=2", *arguments]
    first = LightningCLI(model, trainer_defaults=defaults, seed_everything_default=1)
    scenario.observe(first=metrics(first.trainer), lr=user.lr_of(first.trainer), files=files(OUT))
    config = shutil.copy(next(OUT.rglob("config.yaml")), OUT / "mine.yaml")
    sys.argv[1:] = ["fit", f"--config={config}", "--trainer.max_epochs=1"]
    second = LightningCLI(model, trainer_defaults=defaults, save_config_callback=None).trainer
    scenario.observe(second=metrics(second), epochs=second.current_epoch)


def objects():
    options = {"max_epochs": 1, "enable_checkpointing": True}
    one = trainer(callbacks=[checkpoints()], **options)
    one.fit(Model(schedule=False, options=Options()))
    path = one.checkpoint_callback.best_model_path
    tested = rounded(list(one.test(ckpt_path="best")[0].values()))
    resumed = trainer(callbacks=[checkpoints("more")], **{**options, "max_epochs": 2})
    resumed.fit(Model(schedule=False, options=Options()), ckpt_path=str(OUT / "checkpoints" / "last.ckpt"))
    (OUT / "theirs").mkdir()
    theirs = shutil.copy(path, OUT / "theirs" / "model.ckpt")
    if os.environ["SCENARIO_SHIM"] == "1":
        import lightning_patches

        lightning_patches.trust_checkpoints(OUT / "theirs")
    widths = [Model.load_from_checkpoint(one).hparams.options.width for one in (path, theirs)]
    scenario.observe(tested=tested, resumed=metrics(resumed), widths=widths)


if __name__ == "__main__":
    with scenario.observing_errors():
        scenario.observe(version=pl.__version__)
        if CASE.startswith("fit"):
            fit(schedule=CASE == "fit")
        elif CASE.startswith("cli"):
            command_line()
        elif CASE.startswith("ddp"):
            ranks()
        elif CASE != "import":
            {"evaluate": evaluate, "objects": objects}[CASE]()
