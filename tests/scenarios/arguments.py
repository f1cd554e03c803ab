"""Arguments that make no observable difference; see `tests/differential/test_laws.py`.

For each argument of a class or function, the same program runs without and with a value, and with further options. It
observes hooks, losses, weights, settings of torch, logged values, callbacks, files, messages and the error.

Cases: ``Trainer``, ``Fabric``, ``ModelCheckpoint``, ``EarlyStopping``, ``CSVLogger``, ``lr_find``,
``scale_batch_size``.
"""

import contextlib
import inspect
import io
import logging
import os
import re
import tempfile
import warnings
from datetime import timedelta
from pathlib import Path

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

pl = scenario.pytorch()
callbacks = scenario.pytorch("callbacks")
loggers = scenario.pytorch("loggers")
SEEN = []
TEXTS = (".csv", ".yaml")


class Model(pl.LightningModule):
    def __init__(self, lr=0.1, rate=0.1, batch_size=2, size=2):
        super().__init__()
        self.save_hyperparameters()
        self.lr, self.rate, self.batch_size, self.size = lr, rate, batch_size, size
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))

    def settings(self):
        flags = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()
        more = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark, self.dtype
        return *flags, *more, [type(layer).__name__ for layer in self.layers]

    def loss(self, stage, batch):
        loss = (self.layers(batch.to(self.dtype)) - 1).pow(2).mean()
        value = float("nan") if self.current_epoch == 2 else self.current_epoch + self.global_step / 100
        SEEN.append((stage, self.current_epoch, self.global_step, float(loss), batch.sum().item(), self.settings()))
        self.log(stage, loss, on_step=stage == "fit")
        self.log(f"{stage}_worse", value)
        self.log(f"{stage}_same", 1.0)
        return loss

    def training_step(self, batch, batch_idx):
        return self.loss("fit", batch)

    def validation_step(self, batch, batch_idx):
        self.loss("val", batch)

    def test_step(self, batch, batch_idx):
        self.loss("test", batch)

    def predict_step(self, batch, batch_idx):
        SEEN.append(("predict", batch.sum().item()))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)

    def loader(self):
        SEEN.append("loader")
        return DataLoader(rows(), batch_size=self.batch_size)

    train_dataloader = val_dataloader = test_dataloader = predict_dataloader = loader


class Data(pl.LightningDataModule):
    def train_dataloader(self):
        return loader(3)

    val_dataloader = test_dataloader = train_dataloader


class Noting(callbacks.Callback):
    """Notes the hooks and the loader of an epoch."""

    def on_train_epoch_start(self, trainer, module):
        SEEN.append((trainer.current_epoch, type(trainer.train_dataloader.sampler).__name__, trainer.max_steps))

    def on_validation_end(self, trainer, module):
        SEEN.append("validated")


def rows(number=8):
    return torch.randn(number, 3, generator=torch.Generator().manual_seed(1))


def loader(size=2):
    return DataLoader(rows(), batch_size=size)


def trainer(**options):
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    quiet.update(accelerator="cpu", devices=1, max_epochs=3, enable_model_summary=False, log_every_n_steps=1)
    return pl.Trainer(**{**quiet, **options})


def of_trainer(fits=True, test=False, **options):
    one = trainer(**options)
    SEEN.append((type(one.strategy), one.num_devices, one.num_nodes, one.default_root_dir, type(one.precision_plugin)))
    SEEN.append([type(callback) for callback in one.callbacks])
    if fits:
        one.fit(Model())
        SEEN.append((one.callback_metrics, one.current_epoch))
    if test:
        one.test(Model(), verbose=False)
        one.predict(Model())


def of_fabric(**options):
    one = scenario.fabric().Fabric(**{"accelerator": "cpu", "devices": 1, **options})
    SEEN.append((type(one.strategy), one.world_size, one.strategy.precision.__class__, len(one._callbacks)))
    SEEN.append((getattr(one._connector, "_num_nodes_flag", None), len(one._loggers)))


def of_checkpoint(fails=False, more=None, **options):
    class Failing(callbacks.Callback):
        def on_train_batch_start(self, trainer, module, batch, batch_idx):
            if fails and trainer.global_step == 2:
                raise ValueError

    one = callbacks.ModelCheckpoint(**options)
    trainer(callbacks=[one, Failing()], enable_checkpointing=True, **(more or {})).fit(Model())
    SEEN.append((one.best_model_path, one.last_model_path, one.best_model_score))
    SEEN.extend("optimizer_states" in torch.load(path, weights_only=False) for path in files() if "ckpt" in path)


def of_stopping(more=None, **options):
    one = callbacks.EarlyStopping(**options)
    trainer(callbacks=[one], max_epochs=5, **(more or {})).fit(Model())
    SEEN.append((one.stopped_epoch, one.best_score, one.wait_count))


def of_csv(**options):
    one = loggers.CSVLogger(**options)
    limits = {"limit_train_batches": 3, "limit_val_batches": 0, "max_epochs": 1}
    trainer(logger=one, callbacks=[Reading()], **limits).fit(Model())
    SEEN.append(Path(one.log_dir, "metrics.csv").read_text())


class Reading(callbacks.Callback):
    """Notes which files exist after each batch."""

    def on_train_batch_end(self, *_):
        SEEN.append(files())


def of_tuner(name):
    def run(model=None, **options):
        model, tuner = model or Model(), scenario.tuner(trainer(num_sanity_val_steps=0, max_epochs=10))
        found = getattr(tuner, name)(model, **options)
        SEEN.append((model.lr, model.rate, model.batch_size, model.size, getattr(found, "results", found)))

    return run


def stopping():
    return [callbacks.EarlyStopping("val_worse", patience=0)]


def noting():
    return [Noting()]


def other_model():
    return Model(rate=0.2)


def threes():
    return loader(3)


DDP = {"strategy": "ddp"}
WORSE = {"monitor": "val_worse"}
TABLES = {
    "Trainer": (of_trainer, pl.Trainer, {"accelerator": ("cuda",), "strategy": ("ddp",),
     "devices": (2, {"fits": False}), "num_nodes": (2, {"fits": False}), "precision": ("64-true",), "logger": (True,),
     "callbacks": (noting,), "fast_dev_run": (True,), "max_epochs": (2,), "min_epochs": (3, {"callbacks": stopping}),
     "max_steps": (4,), "min_steps": (12, {"callbacks": stopping}), "max_time": (timedelta(microseconds=1),),
     "limit_train_batches": (2,), "limit_val_batches": (2,), "limit_test_batches": (2, {"test": True}),
     "limit_predict_batches": (2, {"test": True}), "overfit_batches": (1,), "val_check_interval": (2,),
     "check_val_every_n_epoch": (2,), "num_sanity_val_steps": (0,), "log_every_n_steps": (3, {"logger": True}),
     "enable_checkpointing": (True,), "enable_progress_bar": (True,), "enable_model_summary": (True,),
     "accumulate_grad_batches": (2,), "gradient_clip_val": (0.01,),
     "gradient_clip_algorithm": ("value", {"gradient_clip_val": 0.01}), "deterministic": (True,), "benchmark": (True,),
     "inference_mode": (False, {"test": True}), "use_distributed_sampler": (False, {**DDP, "callbacks": noting}),
     "profiler": ("simple",), "detect_anomaly": (True,),
     "barebones": (True, {"log_every_n_steps": None, "enable_model_summary": None}),
     "plugins": ([scenario.pytorch("plugins").DoublePrecision()],), "sync_batchnorm": (True, DDP),
     "reload_dataloaders_every_n_epochs": (1,), "default_root_dir": ("elsewhere",),
     "enable_autolog_hparams": (False, {"logger": True}), "model_registry": ("model", {"enable_checkpointing": True})}),
    "Fabric": (of_fabric, scenario.fabric().Fabric, {"accelerator": ("cuda",), "strategy": ("ddp",), "devices": (2,),
     "num_nodes": (2,), "precision": ("64-true",), "plugins": ([scenario.fabric("plugins").DoublePrecision()],),
     "callbacks": (noting,), "loggers": ([scenario.fabric("loggers").CSVLogger(".")],)}),
    "ModelCheckpoint": (of_checkpoint, callbacks.ModelCheckpoint,
     {"dirpath": ("elsewhere",), "filename": ("{epoch}-{val_same}",), "monitor": ("val",), "verbose": (True, WORSE),
     "save_last": (True,), "save_top_k": (2, WORSE), "save_on_exception": (True, {"fails": True}),
     "save_weights_only": (True,), "mode": ("max", {"monitor": "fit_worse"}),
     "auto_insert_metric_name": (False, {"filename": "{val_same}"}), "every_n_train_steps": (2, {"save_top_k": -1}),
     "train_time_interval": (timedelta(microseconds=1), {"save_top_k": -1}), "every_n_epochs": (2, {"save_top_k": -1}),
     "save_on_train_epoch_end": (True, {"more": {"val_check_interval": 2}, "save_top_k": -1}),
     "enable_version_counter": (False, {**WORSE, "filename": "same", "save_top_k": 2})}),
    "EarlyStopping": (of_stopping, callbacks.EarlyStopping,
     {"monitor": ("val_worse",), "min_delta": (10.0, {"monitor": "val_worse", "mode": "max"}),
     "patience": (0, {**WORSE, "check_finite": False}), "verbose": (True, WORSE),
     "mode": ("max", {**WORSE, "patience": 0}), "strict": (False, {"monitor": "absent"}),
     "check_finite": (False, WORSE), "stopping_threshold": (0.5, {"monitor": "val_same", "mode": "max"}),
     "divergence_threshold": (0.5, {"monitor": "val_same"}),
     "check_on_train_epoch_end": (True, {**WORSE, "more": {"val_check_interval": 2}, "patience": 1}),
     "log_rank_zero_only": (True, {"monitor": "val_same", "verbose": True})}, {"monitor": "val"}),
    "CSVLogger": (of_csv, loggers.CSVLogger, {"save_dir": ("elsewhere",), "name": ("name",), "version": (3,),
     "prefix": ("before",), "flush_logs_every_n_steps": (1,)}, {"save_dir": "."}),
    "lr_find": (of_tuner("lr_find"), scenario.pytorch("tuner").Tuner.lr_find,
     {"model": (other_model,), "train_dataloaders": (threes,), "val_dataloaders": (threes,), "dataloaders": (threes,),
     "datamodule": (Data,), "method": ("validate",), "min_lr": (1e-4,), "max_lr": (0.1,), "num_training": (12,),
     "mode": ("linear",), "early_stop_threshold": (0.5,), "update_attr": (False,), "attr_name": ("rate",)},
     {"num_training": 20}),
    "scale_batch_size": (of_tuner("scale_batch_size"), scenario.pytorch("tuner").Tuner.scale_batch_size,
     {"model": (other_model,), "train_dataloaders": (threes,), "val_dataloaders": (threes,), "dataloaders": (threes,),
     "datamodule": (Data,), "method": ("validate",), "mode": ("binsearch",), "steps_per_trial": (2,), "init_val": (3,),
     "max_trials": (3,), "batch_arg_name": ("size",), "margin": (0.5, {"mode": "binsearch"}), "max_val": (3,)},
     {"max_trials": 2, "steps_per_trial": 1}),
}  # fmt: skip


def files():
    return sorted(os.path.join(root, name) for root, _, names in os.walk(".") for name in names)


def observed(program, options):
    """Run the program in a new directory, and return its observations as a text. Functions create their values."""
    options = {name: value() if inspect.isroutine(value) or value is Data else value for name, value in options.items()}
    SEEN.clear()
    messages, before = io.StringIO(), os.getcwd()
    handler = logging.StreamHandler(messages)
    named = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning")]
    for logger in named:
        logger.addHandler(handler)
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        os.chdir(directory)
        torch.manual_seed(1)
        try:
            with contextlib.redirect_stdout(messages), contextlib.redirect_stderr(messages):
                program(**options)
        except (Exception, SystemExit) as error:
            SEEN.append(f"{type(error).__name__}: {error}")
        finally:
            SEEN.append([(path, Path(path).read_text() if path.endswith(TEXTS) else "") for path in files()])
            os.chdir(before)
            for logger in named:
                logger.removeHandler(handler)
            if torch.distributed.is_initialized():
                torch.distributed.destroy_process_group()
            torch.use_deterministic_algorithms(False)
            torch.autograd.set_detect_anomaly(False)
            torch.backends.cudnn.benchmark = False
            torch.set_num_threads(1)
        said = sorted(str(one.message) for one in caught)
        text = repr((SEEN, messages.getvalue(), said)).replace(directory, "DIRECTORY")
        changing = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(\\r)?Finding best initial lr:.*?\]"
        return re.sub(changing, "", text)


def main():
    program, owner, table, *common = TABLES[scenario.CASE]
    common, without = dict(*common), {}
    accepted = [name for name in inspect.signature(owner).parameters if name not in ("self", "args", "kwargs")]
    unused = []
    observed(program, common)  # some messages appear once in a process
    for name, (value, *more) in table.items():
        if name in accepted:
            options = {**common, **dict(*more)}
            if repr(options) not in without:
                without[repr(options)] = observed(program, options)
            if observed(program, {**options, name: value}) == without[repr(options)]:
                unused.append(name)
    untested = [name for name in accepted if name not in table]
    is_steady = observed(program, common) == without[repr(common)]
    scenario.observe(unused=sorted(unused), untested=untested, is_steady=is_steady)


if __name__ == "__main__":
    main()
