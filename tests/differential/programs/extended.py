"""Programs that can extend all of their parts (``own``). They call the functions that the default patches replace.

They work on every release that has the API they use.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import torch
from torch.utils.data import DataLoader, Sampler, TensorDataset

from tests.differential.observing import MultiprocessingDDP, Watch, module, note, observe, pl, tensors_of


class Model(pl.LightningModule):
    own: Any = None
    """The ``own`` of this process, for objects that the module creates."""

    def __init__(self, lr: float = 0.125, batch_size: int = 2) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.lr, self.batch_size = lr, batch_size
        self.backbone = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        self.head = torch.nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.backbone(x))

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        loss = self(batch[0]).pow(2).mean()
        self.log("loss", loss, prog_bar=True)
        self.log("number", batch_idx, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val_loss", self(batch[0]).pow(2).mean(), prog_bar=True)

    def test_step(self, batch: Any, batch_idx: int) -> None:
        self.log("test_loss", self(batch[0]).pow(2).mean())

    def predict_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        return self(batch[0])

    def configure_optimizers(self) -> Any:
        optimizer = Model.own(torch.optim.SGD, [p for p in self.parameters() if p.requires_grad], lr=self.lr)
        return {"optimizer": optimizer, "lr_scheduler": Model.own(torch.optim.lr_scheduler.StepLR, optimizer, 1)}


class Own(Sampler[int]):
    """A custom sampler with set_epoch."""

    def __init__(self, length: int = 8) -> None:
        self.length, self.epoch = length, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Any:
        return iter([(i + self.epoch) % self.length for i in range(self.length)])

    def __len__(self) -> int:
        return self.length


def data(length: int = 8) -> TensorDataset:
    return TensorDataset(torch.randn(length, 4, generator=torch.Generator().manual_seed(7)))


def loader(own: Any, length: int = 8, size: int = 2, **more: Any) -> Any:
    return own(DataLoader, own(TensorDataset, *data(length).tensors), batch_size=size, **more)


def trainer(own: Any, **options: Any) -> Any:
    """A Trainer whose parts are all of user classes."""
    Model.own = own
    given = {"max_epochs": 2, "log_every_n_steps": 1, "accelerator": "cpu", "devices": 1, "default_root_dir": "root"}
    given |= {"enable_model_summary": False, "enable_progress_bar": False, "num_sanity_val_steps": 0, **options}
    if "strategy" not in given:
        given["strategy"] = own(module("pytorch.strategies").SingleDeviceStrategy, device=torch.device("cpu"))
        plugins = list(given.get("plugins", []))
        if not any(hasattr(plugin, "save_checkpoint") for plugin in plugins):
            plugins.append(own(module("pytorch.plugins.io").TorchCheckpointIO))
        given["plugins"] = plugins
    if "logger" not in given:
        given["logger"] = own(pl.loggers.CSVLogger, "logs")
    given["callbacks"] = [*given.get("callbacks", []), own(pl.Callback), Watch()]
    return own(pl.Trainer, **given)


def told(model: Any, tr: Any) -> None:
    """Record the state at the end of the program."""
    observe("weights", list(tensors_of(model)))
    observe("metrics", dict(tr.callback_metrics))
    for callback in tr.callbacks:
        if hasattr(callback, "best_model_path"):
            observe("best", [callback.best_model_path, callback.last_model_path, sorted(callback.best_k_models)])


def train(own: Any, cls: Any = Model, *loaders: Any, path: Any = None, **options: Any) -> tuple[Any, Any]:
    """Train a new model with a new Trainer, and return both."""
    model, tr = own(cls), trainer(own, **options)
    tr.fit(model, *(loaders or (loader(own), loader(own, 4))), ckpt_path=path)
    told(model, tr)
    return model, tr


def best(own: Any, cls: Any = pl.callbacks.ModelCheckpoint, **more: Any) -> Any:
    return own(cls, **{"dirpath": "best", "monitor": "val_loss", "save_top_k": -1, **more})


def checkpoints(observe: Any, own: Any) -> None:
    """Checkpoints within the epoch, monitored by a validation metric; then evaluation and loading."""
    kept = best(own, every_n_train_steps=2, save_top_k=2, save_last=True)
    model, tr = train(own, Model, loader(own, shuffle=True), loader(own, 4), callbacks=[kept], val_check_interval=2)
    tr.validate(model, loader(own, 4), verbose=False)
    tr.test(model, loader(own, 4), verbose=False)
    observe("predicted", tr.predict(model, loader(own, 4)))
    own.derived(Model).load_from_checkpoint(kept.best_model_path)


def resumed(observe: Any, own: Any) -> None:
    """A training in two parts, from a checkpoint at the end of an epoch."""
    for epochs in (1, 3):
        path = "best/last.ckpt" if epochs > 1 else None
        model, tr = train(own, callbacks=[best(own, save_last=True, save_top_k=2)], max_epochs=epochs, path=path)
    tr.validate(model, loader(own, 4), ckpt_path="best", verbose=False)


def samplers(observe: Any, own: Any) -> None:
    """Two ranks with a custom sampler that Lightning wraps, an environment, and shared metrics."""

    class Synced(Model):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val_loss", self(batch[0]).pow(2).mean(), sync_dist=True)

    environment = own(module("pytorch.plugins.environments").LightningEnvironment)
    given = {"cluster_environment": environment, "checkpoint_io": own(module("pytorch.plugins.io").TorchCheckpointIO)}
    strategy = own(MultiprocessingDDP, start_method="fork", **given)
    batches = loader(own, sampler=own(Own)), loader(own, 4, sampler=own(Own, 4))
    trainer(own, strategy=strategy, devices=2).fit(own(Synced), *batches)


def interrupted(observe: Any, own: Any) -> None:
    """An error that the program handles, then a second training with checkpoints of the first model."""

    class Fails(Model):
        def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
            if batch_idx == 2 and self.trainer.max_epochs == 2:
                raise RuntimeError("on purpose")

    for epochs in (2, 1):
        try:
            train(own, Fails, callbacks=[best(own, every_n_train_steps=1)], val_check_interval=2, max_epochs=epochs)
        except RuntimeError as error:
            observe("error", error)


def signals(observe: Any, own: Any) -> None:
    """Custom signal handlers, and a signal that all of them ignore."""

    def handler(number: int, frame: Any) -> None:
        note("call", f"handler({signal.Signals(number).name})")

    class Sends(Model):
        def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
            if batch_idx == 1:
                os.kill(os.getpid(), signal.SIGUSR1)

    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, handler)
    train(own, Sends, max_epochs=1)
    observe("handler", signal.getsignal(signal.SIGTERM) is handler)


def cli(observe: Any, own: Any) -> None:
    """The command line with user classes."""
    Model.own = own

    class Data(pl.LightningDataModule):
        def train_dataloader(self) -> Any:
            return loader(own)

    arguments = ["fit", "--trainer.max_epochs=1", "--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false"]
    arguments += ["--trainer.default_root_dir=root", "--model.lr=0.5", "--seed_everything=1"]  # else 2.0 draws a seed
    own.derived(module("pytorch.cli").LightningCLI)(own.derived(Model), own.derived(Data), args=arguments)


def nested(observe: Any, own: Any) -> None:
    """Two Trainers at once: one trains in a hook of the other."""

    class Outer(Model):
        def on_train_epoch_end(self) -> None:
            train(own, logger=False, max_epochs=1)

    train(own, Outer, callbacks=[best(own)])


def registries(observe: Any, own: Any) -> None:
    """A strategy and an accelerator that the program has registered, by their names."""
    strategies, accelerators = module("pytorch.strategies"), module("pytorch.accelerators")
    derived, more = own.derived(strategies.SingleDeviceStrategy), {"device": torch.device("cpu")}
    strategies.StrategyRegistry.register("own", derived, description="own", override=True, **more)
    kind = own.derived(accelerators.CPUAccelerator)
    accelerators.AcceleratorRegistry.register("own", kind, description="own", override=True)
    _, tr = train(own, strategy="own", accelerator=own(accelerators.CPUAccelerator), logger=False)
    observe("strategy", type(tr.strategy).__name__)


def entry_points(observe: Any, own: Any) -> None:
    """A callback from an entry point of an installed package."""
    os.makedirs("site/own-1.0.dist-info")
    for name, text in (
        ("METADATA", "Name: own\nVersion: 1.0\n"),
        ("entry_points.txt", f"[{pl.__name__}.callbacks_factory]\nown = {__name__}:own_callbacks\n"),
    ):
        with open(f"site/own-1.0.dist-info/{name}", "w") as file:
            file.write(text)
    sys.path.insert(0, os.path.abspath("site"))
    train(own, max_epochs=1)


def own_callbacks() -> list[Any]:
    note("call", "own_callbacks()")
    return [Model.own(pl.callbacks.LambdaCallback, on_train_end=lambda *_: note("call", "own on_train_end"))]
