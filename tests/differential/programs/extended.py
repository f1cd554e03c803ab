"""Programs all of whose parts may be extended (``own``). They execute what the default patches replace.

All of them work on every release that has what they use.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Sampler, TensorDataset

from tests.differential.observing import Watch, module, note, observe, pl, tensors_of


class Net(torch.nn.Sequential):
    def __init__(self) -> None:
        super().__init__(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))


class Model(pl.LightningModule):
    own: Any = None
    """Of this process, for what the module makes by itself."""

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
        scheduler = Model.own(torch.optim.lr_scheduler.StepLR, optimizer, 1)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


class Own(Sampler[int]):
    """A sampler of the program's own, with a set_epoch."""

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
    """A Trainer all of whose parts are the program's own."""
    Model.own = own
    device = torch.device("cpu")
    given: dict[str, Any] = {
        "max_epochs": 2,
        "enable_model_summary": False,
        "enable_progress_bar": False,
        "log_every_n_steps": 1,
        "accelerator": "cpu",
        "devices": 1,
        "default_root_dir": "root",
        "num_sanity_val_steps": 0,
    }
    given.update(options)
    if "strategy" not in given:
        given["strategy"] = own(module("pytorch.strategies").SingleDeviceStrategy, device=device)
        plugins = list(given.pop("plugins", []))
        if not any(hasattr(plugin, "save_checkpoint") for plugin in plugins):
            plugins.append(own(module("pytorch.plugins.io").TorchCheckpointIO))
        given["plugins"] = plugins
    if "logger" not in given:
        given["logger"] = own(pl.loggers.CSVLogger, "logs")
    given["callbacks"] = [*given.get("callbacks", []), own(pl.Callback), Watch()]
    return own(pl.Trainer, **given)


def told(model: Any, tr: Any) -> None:
    """What the program has at its end."""
    observe("weights", list(tensors_of(model)))
    observe("metrics", dict(tr.callback_metrics))
    for callback in tr.callbacks:
        if hasattr(callback, "best_model_path"):
            observe("best", [callback.best_model_path, callback.last_model_path, sorted(callback.best_k_models)])


def train(model: Any, tr: Any, *loaders: Any, **more: Any) -> tuple[Any, Any]:
    tr.fit(model, *loaders, **more)
    told(model, tr)
    return model, tr


def checkpoints(observe: Any, own: Any) -> None:
    """Checkpoints within the epoch by a metric of the validation, which comes with them; evaluation; load."""
    best = own(
        pl.callbacks.ModelCheckpoint,
        dirpath="best",
        monitor="val_loss",
        every_n_train_steps=2,
        save_top_k=2,
        save_last=True,
    )
    model = own(Model)
    tr = trainer(own, callbacks=[best], val_check_interval=2)
    train(model, tr, loader(own, shuffle=True), loader(own, 4))
    tr.validate(model, loader(own, 4), verbose=False)
    tr.test(model, loader(own, 4), verbose=False)
    observe("predicted", tr.predict(model, loader(own, 4)))
    own.derived(Model).load_from_checkpoint(best.best_model_path)


def resumed(observe: Any, own: Any) -> None:
    """A training in two parts, from a checkpoint at the end of an epoch; data in order."""
    for epochs in (1, 3):
        best = own(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", save_last=True, save_top_k=2)
        model = own(Model)
        tr = trainer(own, callbacks=[best], max_epochs=epochs)
        path = "best/last.ckpt" if epochs > 1 else None
        train(model, tr, loader(own), loader(own, 4), ckpt_path=path)
    tr.validate(model, loader(own, 4), ckpt_path="best", verbose=False)


def tuner(observe: Any, own: Any) -> None:
    """The learning rate finder and the batch size finder, then a training."""
    model, tr = own(Model), trainer(own, logger=False)
    tuned = own(module("pytorch.tuner").Tuner, tr)

    class Sized(pl.LightningDataModule):
        def __init__(self) -> None:
            super().__init__()
            self.batch_size = 2

        def train_dataloader(self) -> Any:
            return loader(own, 32, self.batch_size)

        def val_dataloader(self) -> Any:
            return loader(own, 4, self.batch_size)

    made = own(Sized)
    found = tuned.lr_find(model, datamodule=made, num_training=8, update_attr=True)
    observe("suggested", found.suggestion(skip_begin=1, skip_end=1))
    observe("size", tuned.scale_batch_size(model, datamodule=made, max_trials=2, steps_per_trial=1))
    train(model, tr, datamodule=made)


def finetuning(observe: Any, own: Any) -> None:
    """A backbone that is frozen at first, with its batch norm in training or not."""
    for train_bn in (True, False):
        model = own(Model)
        callback = own(pl.callbacks.BackboneFinetuning, unfreeze_backbone_at_epoch=1, train_bn=train_bn, verbose=False)
        tr = trainer(own, callbacks=[callback], max_epochs=3)
        train(model, tr, loader(own))


def averaging(observe: Any, own: Any) -> None:
    """WeightAveraging, from 2.6.0 on, with validation and checkpoints."""
    if not hasattr(pl.callbacks, "WeightAveraging"):
        return
    model = own(Model)
    best = own(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", save_top_k=-1)
    tr = trainer(own, callbacks=[own(pl.callbacks.WeightAveraging), best])
    train(model, tr, loader(own), loader(own, 4))


class Odd:
    """What a program's checkpoint may hold: an object that says how it is copied and pickled."""

    def __init__(self) -> None:
        self.itself = self

    def __deepcopy__(self, memo: Any) -> Any:
        note("call", "Odd.__deepcopy__()")
        raise RuntimeError("not to be copied")


def asynchronous(observe: Any, own: Any) -> None:
    """AsyncCheckpointIO around a CheckpointIO of the program's own; what is in the checkpoint are no plain tensors."""

    class Holds(Model):
        def on_save_checkpoint(self, checkpoint: Any) -> None:
            checkpoint["parameter"] = self.head.bias
            checkpoint["view"] = torch.ones(1).expand(100)
            checkpoint["odd"] = Odd()

    inner = own(module("pytorch.plugins.io").TorchCheckpointIO)
    plugin = own(module("pytorch.plugins.io").AsyncCheckpointIO, inner)
    model = own(Holds)
    tr = trainer(own, plugins=[plugin], max_epochs=1)
    train(model, tr, loader(own))
    for name in sorted(os.listdir(os.path.dirname(tr.checkpoint_callback.best_model_path))):
        found = torch.load(tr.checkpoint_callback.best_model_path, weights_only=False)
        kinds = {key: type(found[key]).__name__ for key in ("parameter", "view", "odd")}
        observe(name, {**kinds, "held": found["view"].untyped_storage().nbytes()})


def progress(observe: Any, own: Any) -> None:
    """Progress bars, of Lightning's two kinds, and an entry of the program's own among their metrics."""

    class Shown(Model):
        def on_train_batch_end(self, *_: Any) -> None:
            self.trainer.progress_bar_metrics["own"] = torch.ones(3).numpy()
            observe("bar", dict(self.trainer.progress_bar_metrics))

    for bar in (pl.callbacks.RichProgressBar, pl.callbacks.TQDMProgressBar):
        train(
            own(Shown),
            trainer(own, callbacks=[own(bar)], enable_progress_bar=True, max_epochs=1),
            loader(own),
            loader(own, 4),
        )


def precision(observe: Any, own: Any) -> None:
    """Mixed and double precision of the program's own, with clipping and accumulation."""
    plugins = module("pytorch.plugins")
    mixed = getattr(plugins, "MixedPrecision", None) or plugins.MixedPrecisionPlugin
    double = getattr(plugins, "DoublePrecision", None) or plugins.DoublePrecisionPlugin
    for plugin in (own(mixed, "bf16-mixed", "cpu"), own(double)):
        train(
            own(Model),
            trainer(own, plugins=[plugin], gradient_clip_val=0.5, accumulate_grad_batches=2),
            loader(own),
            loader(own, 4),
        )


def samplers(observe: Any, own: Any) -> None:
    """Two ranks, with a sampler of the program's own that Lightning wraps, and one of batches."""
    strategy = own(
        module("pytorch.strategies").DDPStrategy,
        start_method="fork",
        cluster_environment=own(module("pytorch.plugins.environments").LightningEnvironment),
        checkpoint_io=own(module("pytorch.plugins.io").TorchCheckpointIO),
    )
    model = own(Model)
    batches = loader(own, sampler=own(Own))
    tr = trainer(own, strategy=strategy, devices=2)
    tr.fit(model, batches, loader(own, 4, sampler=own(Own, 4)))


def loaders(observe: Any, own: Any) -> None:
    """Several loaders, worker processes, batch samplers, data without a length, an epoch that ends early."""

    class Endless(torch.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(data(6).tensors[0])

    class Several(Model):
        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            return super().training_step([batch["a"][0]], batch_idx)

    sampler = own(BatchSampler, own(RandomSampler, data()), 2, True)
    many = {
        "a": own(DataLoader, data(), batch_sampler=sampler),
        "b": own(DataLoader, own(Endless), batch_size=2),
        "c": loader(own, num_workers=1),
    }
    train(own(Several), trainer(own), many, loader(own, 4, num_workers=1))


class Stateful(DataLoader):
    """A loader with a state of its own."""

    position = 0

    def state_dict(self) -> dict[str, int]:
        self.position += 1
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = state["position"]
        observe("position", self.position)


def stateful(observe: Any, own: Any) -> None:
    """A loader with a state, saved within the epoch, and resumed."""
    for epochs in (1, 2):
        model = own(Model)
        batches = own(Stateful, data(), batch_size=2)
        best = own(pl.callbacks.ModelCheckpoint, dirpath="best", every_n_train_steps=2, save_top_k=-1)
        tr = trainer(own, max_epochs=epochs, callbacks=[best])
        path = os.path.join("best", sorted(os.listdir("best"))[-1]) if epochs > 1 else None
        train(model, tr, batches, ckpt_path=path)


def interrupted(observe: Any, own: Any) -> None:
    """Errors that the program itself handles, and a second training after them."""

    class Fails(Model):
        left = 3

        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            self.left -= 1
            if self.left == 0:
                raise RuntimeError("on purpose")
            return super().training_step(batch, batch_idx)

    model = own(Fails)
    best = own(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", every_n_train_steps=1, save_top_k=-1)
    tr = trainer(own, callbacks=[best], val_check_interval=2)
    try:
        tr.fit(model, loader(own), loader(own, 4))
    except RuntimeError as error:
        observe("error", error)
    tr = trainer(own, max_epochs=1)
    train(model, tr, loader(own), loader(own, 4))


def signals(observe: Any, own: Any) -> None:
    """Signal handlers of the program's own, and a signal that none of them minds."""

    def handler(number: int, frame: Any) -> None:
        note("call", f"handler({signal.Signals(number).name})")

    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, handler)

    class Sends(Model):
        def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
            if batch_idx == 1:
                os.kill(os.getpid(), signal.SIGUSR1)

    model, tr = own(Sends), trainer(own, max_epochs=1)
    tr.fit(model, loader(own))
    observe("handler", signal.getsignal(signal.SIGTERM) is handler)
    told(model, tr)


def cli(observe: Any, own: Any) -> None:
    """The command line, with classes of the program's own."""
    Model.own = own
    made = own.derived(module("pytorch.cli").LightningCLI)
    model = own.derived(Model)

    class Data(pl.LightningDataModule):
        def train_dataloader(self) -> Any:
            return loader(own)

    arguments = ["fit", "--trainer.max_epochs=1", "--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false"]
    arguments += ["--trainer.default_root_dir=root", "--model.lr=0.5", "--seed_everything=1"]  # else 2.0 draws a seed
    made(model, own.derived(Data), args=arguments)


def nested(observe: Any, own: Any) -> None:
    """Two Trainers at once: one evaluates in a hook of the other."""

    class Outer(Model):
        def on_train_epoch_end(self) -> None:
            other = trainer(own, logger=False, max_epochs=1)
            inner = own(Model)
            other.fit(inner, loader(own), loader(own, 4))
            observe("inner", other.callback_metrics["val_loss"])

    model = own(Outer)
    best = own(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss")
    tr = trainer(own, callbacks=[best])
    train(model, tr, loader(own), loader(own, 4))


def registries(observe: Any, own: Any) -> None:
    """A strategy and an accelerator that the program has registered, by their names."""
    strategies, accelerators = module("pytorch.strategies"), module("pytorch.accelerators")
    strategy = own.derived(strategies.SingleDeviceStrategy)
    strategies.StrategyRegistry.register("own", strategy, description="own", override=True, device=torch.device("cpu"))
    kind = own.derived(accelerators.CPUAccelerator)
    accelerators.AcceleratorRegistry.register("own", kind, description="own", override=True)
    model = own(Model)
    tr = own(
        pl.Trainer,
        strategy="own",
        accelerator=own(accelerators.CPUAccelerator),
        max_epochs=1,
        logger=False,
        enable_progress_bar=False,
        default_root_dir="root",
    )
    observe("strategy", type(tr.strategy).__name__)
    train(model, tr, loader(own), loader(own, 4))


def own_callbacks() -> list[Any]:
    note("call", "own_callbacks()")
    return [Model.own(pl.callbacks.LambdaCallback, on_train_end=lambda *_: note("call", "own on_train_end"))]


def entry_points(observe: Any, own: Any) -> None:
    """A callback that comes by an entry point of an installed package."""
    group = f"{pl.__name__}.callbacks_factory"
    os.makedirs("site/own-1.0.dist-info")
    with open("site/own-1.0.dist-info/METADATA", "w") as file:
        file.write("Name: own\nVersion: 1.0\n")
    with open("site/own-1.0.dist-info/entry_points.txt", "w") as file:
        file.write(f"[{group}]\nown = {__name__}:own_callbacks\n")
    sys.path.insert(0, os.path.abspath("site"))
    train(own(Model), trainer(own, max_epochs=1), loader(own))
