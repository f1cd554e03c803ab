"""Small programs that execute what the default patches replace, made of parts that a program may extend.

Each is a function of an :class:`tests.extension_points.spies.Extension`, which makes the parts. All of them work on
every release that has what they use.
"""

from __future__ import annotations

import functools
import logging
import os
import signal
import sys
from typing import Any, Callable
from unittest import mock

import torch
import wrapt
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Sampler, TensorDataset

from tests.extension_points import spies
from tests.extension_points.spies import Extension
from tests.healthy.watch import note, pl, saw, shown, weights

LIGHTNING = pl.__name__ == "lightning.pytorch"
EXTENSION = Extension({"kind": "plain"})
"""Of this process; `program.py` puts another in."""
SITUATIONS: dict[str, Callable[[Extension], None]] = {}


def situation(function: Callable[[Extension], None]) -> Callable[[Extension], None]:
    SITUATIONS[function.__name__] = function
    return function


def module(name: str) -> Any:
    """``"pytorch.strategies"`` in this arm's namespace."""
    import importlib

    space, _, rest = name.partition(".")
    root = f"lightning.{space}" if LIGHTNING else {"pytorch": "pytorch_lightning", "fabric": "lightning_fabric"}[space]
    return importlib.import_module(f"{root}.{rest}" if rest else root)


class Net(torch.nn.Sequential):
    def __init__(self) -> None:
        super().__init__(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))


class Model(pl.LightningModule):
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
        optimizer = EXTENSION.make(torch.optim.SGD, [p for p in self.parameters() if p.requires_grad], lr=self.lr)
        scheduler = EXTENSION.make(torch.optim.lr_scheduler.StepLR, optimizer, 1)
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


def loader(x: Extension, length: int = 8, size: int = 2, **more: Any) -> Any:
    return x.make(DataLoader, x.make(TensorDataset, *data(length).tensors), batch_size=size, **more)


def trainer(x: Extension, **options: Any) -> Any:
    """A Trainer all of whose parts are the program's own."""
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
        given["strategy"] = x.make(module("pytorch.strategies").SingleDeviceStrategy, device=device)
        plugins = list(given.pop("plugins", []))
        if not any(hasattr(plugin, "save_checkpoint") for plugin in plugins):
            plugins.append(x.make(module("pytorch.plugins.io").TorchCheckpointIO))
        given["plugins"] = plugins
    if "logger" not in given:
        given["logger"] = x.make(pl.loggers.CSVLogger, "logs")
    given["callbacks"] = [*given.get("callbacks", []), x.make(pl.Callback)]
    return x.make(pl.Trainer, **given)


def told(model: Any, tr: Any) -> None:
    """What the program has at its end."""
    with torch.no_grad():
        note("weights", " ".join(f"{n} {shown(p)}" for n, p in torch.nn.Module.state_dict(model).items()))
    saw("metrics", dict(tr.callback_metrics))
    for callback in tr.callbacks:
        if hasattr(callback, "best_model_path"):
            saw("best", [callback.best_model_path, callback.last_model_path, sorted(callback.best_k_models)])


@situation
def checkpoints(x: Extension) -> None:
    """Checkpoints within the epoch by a metric of the validation, which comes with them; evaluation; load."""
    best = x.make(
        pl.callbacks.ModelCheckpoint,
        dirpath="best",
        monitor="val_loss",
        every_n_train_steps=2,
        save_top_k=2,
        save_last=True,
    )
    model = x.make(Model)
    tr = trainer(x, callbacks=[best], val_check_interval=2)
    tr.fit(model, loader(x, shuffle=True), loader(x, 4))
    told(model, tr)
    tr.validate(model, loader(x, 4), verbose=False)
    tr.test(model, loader(x, 4), verbose=False)
    saw("predicted", tr.predict(model, loader(x, 4)))
    x.derived(Model).load_from_checkpoint(best.best_model_path)


@situation
def between(x: Extension) -> None:
    """Checkpoints at steps of their own, by the same metric."""
    best = x.make(
        pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", every_n_train_steps=1, save_top_k=-1
    )
    model = x.make(Model)
    tr = trainer(x, callbacks=[best], val_check_interval=2)
    tr.fit(model, loader(x), loader(x, 4))
    told(model, tr)


@situation
def resumed(x: Extension) -> None:
    """A training in two parts, from a checkpoint at the end of an epoch; data in order."""
    for epochs in (1, 3):
        best = x.make(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", save_last=True, save_top_k=2)
        model = x.make(Model)
        tr = trainer(x, callbacks=[best], max_epochs=epochs)
        path = "best/last.ckpt" if epochs > 1 else None
        tr.fit(model, loader(x), loader(x, 4), ckpt_path=path)
        told(model, tr)
    tr.validate(model, loader(x, 4), ckpt_path="best", verbose=False)


@situation
def resumed_shuffled(x: Extension) -> None:
    """The same with shuffled data."""
    for epochs in (1, 3):
        model = x.make(Model)
        pl.seed_everything(1)
        tr = trainer(x, max_epochs=epochs)
        tr.fit(model, loader(x, shuffle=True), ckpt_path="c.ckpt" if epochs > 1 else None)
        tr.save_checkpoint("c.ckpt")
        told(model, tr)


@situation
def tuner(x: Extension) -> None:
    """The learning rate finder and the batch size finder, then a training."""
    model, tr = x.make(Model), trainer(x, logger=False)
    tuned = x.make(module("pytorch.tuner").Tuner, tr)

    class Sized(pl.LightningDataModule):
        def __init__(self) -> None:
            super().__init__()
            self.batch_size = 2

        def train_dataloader(self) -> Any:
            return loader(x, 32, self.batch_size)

        def val_dataloader(self) -> Any:
            return loader(x, 4, self.batch_size)

    Sized.__module__ = __name__
    made = x.make(Sized)
    found = tuned.lr_find(model, datamodule=made, num_training=8, update_attr=True)
    saw("suggested", found.suggestion(skip_begin=1, skip_end=1))
    saw("size", tuned.scale_batch_size(model, datamodule=made, max_trials=2, steps_per_trial=1))
    tr.fit(model, datamodule=made)
    told(model, tr)


@situation
def finders(x: Extension) -> None:
    """The finders as callbacks."""

    class Found(Model):
        def train_dataloader(self) -> Any:
            return loader(x, 32, self.batch_size)

        def val_dataloader(self) -> Any:
            return loader(x, 4, self.batch_size)

    Found.__module__ = __name__
    model = x.make(Found)
    callbacks = [
        x.make(pl.callbacks.LearningRateFinder, num_training_steps=8),
        x.make(pl.callbacks.BatchSizeFinder, max_trials=2, steps_per_trial=1),
    ]
    tr = trainer(x, callbacks=callbacks, logger=False, max_epochs=1)
    tr.fit(model)
    told(model, tr)


@situation
def finetuning(x: Extension) -> None:
    """A backbone that is frozen at first, with its batch norm in training or not."""
    for train_bn in (True, False):
        model = x.make(Model)
        callback = x.make(
            pl.callbacks.BackboneFinetuning, unfreeze_backbone_at_epoch=1, train_bn=train_bn, verbose=False
        )
        tr = trainer(x, callbacks=[callback], max_epochs=3)
        tr.fit(model, loader(x))
        told(model, tr)


@situation
def swa(x: Extension) -> None:
    model = x.make(Model)
    tr = trainer(
        x, callbacks=[x.make(pl.callbacks.StochasticWeightAveraging, swa_lrs=0.01, swa_epoch_start=1)], max_epochs=4
    )
    tr.fit(model, loader(x), loader(x, 4))
    told(model, tr)


@situation
def averaging(x: Extension) -> None:
    """WeightAveraging, from 2.6.0 on, with validation and checkpoints."""
    if not hasattr(pl.callbacks, "WeightAveraging"):
        return
    model = x.make(Model)
    best = x.make(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", save_top_k=-1)
    tr = trainer(x, callbacks=[x.make(pl.callbacks.WeightAveraging), best])
    tr.fit(model, loader(x), loader(x, 4))
    told(model, tr)


@situation
def own_average(x: Extension) -> None:
    """A subclass that averages by itself, into the average that Lightning keeps."""
    if not hasattr(pl.callbacks, "WeightAveraging"):
        return

    class Average(pl.callbacks.WeightAveraging):
        def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
            with torch.no_grad():
                for own, new in zip(self._average_model.module.parameters(), torch.nn.Module.parameters(pl_module)):
                    own.lerp_(new, 0.25)

    Average.__module__ = __name__
    model = x.make(Model)
    tr = trainer(x, callbacks=[x.make(Average)])
    tr.fit(model, loader(x), loader(x, 4))
    told(model, tr)


@situation
def asynchronous(x: Extension) -> None:
    """AsyncCheckpointIO around a CheckpointIO of the program's own; what is in the checkpoint are no plain tensors."""

    class Holds(Model):
        def on_save_checkpoint(self, checkpoint: Any) -> None:
            checkpoint["parameter"] = self.head.bias
            checkpoint["view"] = torch.ones(1).expand(100)
            checkpoint["odd"] = Odd()

    Holds.__module__ = __name__
    inner = x.make(module("pytorch.plugins.io").TorchCheckpointIO)
    plugin = x.make(module("pytorch.plugins.io").AsyncCheckpointIO, inner)
    model = x.make(Holds)
    tr = trainer(x, plugins=[plugin], max_epochs=1)
    tr.fit(model, loader(x))
    told(model, tr)
    for name in sorted(os.listdir(os.path.dirname(tr.checkpoint_callback.best_model_path))):
        found = torch.load(tr.checkpoint_callback.best_model_path, weights_only=False)
        kinds = {key: type(found[key]).__name__ for key in ("parameter", "view", "odd")}
        saw(name, {**kinds, "held": found["view"].untyped_storage().nbytes()})


class Odd:
    """What a program's checkpoint may hold: an object that says how it is copied and pickled."""

    def __init__(self) -> None:
        self.itself = self

    def __deepcopy__(self, memo: Any) -> Any:
        note("call", "Odd.__deepcopy__()")
        raise RuntimeError("not to be copied")


@situation
def progress(x: Extension) -> None:
    """Progress bars, of Lightning's two kinds, and an entry of the program's own among their metrics."""

    class Shown(Model):
        def on_train_batch_end(self, *_: Any) -> None:
            self.trainer.progress_bar_metrics["own"] = torch.ones(3).numpy()
            saw("bar", dict(self.trainer.progress_bar_metrics))

    Shown.__module__ = __name__
    for bar in (pl.callbacks.RichProgressBar, pl.callbacks.TQDMProgressBar):
        model = x.make(Shown)
        tr = trainer(x, callbacks=[x.make(bar)], enable_progress_bar=True, max_epochs=1)
        tr.fit(model, loader(x), loader(x, 4))
        told(model, tr)


@situation
def manual(x: Extension) -> None:
    """Manual optimization, with an optimizer that is called twice a step, and toggled."""

    class ByHand(Model):
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> None:
            optimizer = self.optimizers()
            for _ in range(2):
                loss = self(batch[0]).pow(2).mean()
                optimizer.zero_grad()
                self.manual_backward(loss)
                optimizer.step()
            self.log("loss", loss)

    ByHand.__module__ = __name__
    model, tr = x.make(ByHand), trainer(x)
    tr.fit(model, loader(x), loader(x, 4))
    told(model, tr)


@situation
def precision(x: Extension) -> None:
    """Mixed and double precision of the program's own, with clipping and accumulation."""
    plugins = module("pytorch.plugins")
    mixed = getattr(plugins, "MixedPrecision", None) or plugins.MixedPrecisionPlugin
    double = getattr(plugins, "DoublePrecision", None) or plugins.DoublePrecisionPlugin
    for plugin in (x.make(mixed, "bf16-mixed", "cpu"), x.make(double)):
        model = x.make(Model)
        tr = trainer(x, plugins=[plugin], gradient_clip_val=0.5, accumulate_grad_batches=2)
        tr.fit(model, loader(x), loader(x, 4))
        told(model, tr)


@situation
def samplers(x: Extension) -> None:
    """Two ranks, with a sampler of the program's own that Lightning wraps, and one of batches."""
    spies.only_ranks = True
    strategy = x.make(
        module("pytorch.strategies").DDPStrategy,
        start_method="fork",
        cluster_environment=x.make(module("pytorch.plugins.environments").LightningEnvironment),
        checkpoint_io=x.make(module("pytorch.plugins.io").TorchCheckpointIO),
    )
    model = x.make(Model)
    batches = loader(x, sampler=x.make(Own))
    tr = trainer(x, strategy=strategy, devices=2)
    tr.fit(model, batches, loader(x, 4, sampler=x.make(Own, 4)))


@situation
def loaders(x: Extension) -> None:
    """Several loaders, worker processes, batch samplers, data without a length, an epoch that ends early."""

    class Endless(torch.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(data(6).tensors[0])

    class Several(Model):
        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            return super().training_step([batch["a"][0]], batch_idx)

    for cls in (Endless, Several):
        cls.__module__, cls.__qualname__ = __name__, cls.__name__
        globals()[cls.__name__] = cls
    sampler = x.make(BatchSampler, x.make(RandomSampler, data()), 2, True)
    many = {
        "a": x.make(DataLoader, data(), batch_sampler=sampler),
        "b": x.make(DataLoader, x.make(Endless), batch_size=2),
        "c": loader(x, num_workers=1),
    }
    model, tr = x.make(Several), trainer(x)
    tr.fit(model, many, loader(x, 4, num_workers=1))
    told(model, tr)


class Stateful(DataLoader):
    """A loader with a state of its own."""

    position = 0

    def state_dict(self) -> dict[str, int]:
        self.position += 1
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = state["position"]
        saw("position", self.position)


@situation
def stateful(x: Extension) -> None:
    """A loader with a state, saved within the epoch, and resumed."""
    for epochs in (1, 2):
        model = x.make(Model)
        batches = x.make(Stateful, data(), batch_size=2)
        best = x.make(pl.callbacks.ModelCheckpoint, dirpath="best", every_n_train_steps=2, save_top_k=-1)
        tr = trainer(x, max_epochs=epochs, callbacks=[best])
        path = os.path.join("best", sorted(os.listdir("best"))[-1]) if epochs > 1 else None
        tr.fit(model, batches, ckpt_path=path)
        told(model, tr)


@situation
def interrupted(x: Extension) -> None:
    """Errors that the program itself handles, and a second training after them."""

    class Fails(Model):
        left = 3

        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            self.left -= 1
            if self.left == 0:
                raise RuntimeError("on purpose")
            return super().training_step(batch, batch_idx)

    Fails.__module__ = __name__
    model = x.make(Fails)
    best = x.make(
        pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", every_n_train_steps=1, save_top_k=-1
    )
    tr = trainer(x, callbacks=[best], val_check_interval=2)
    try:
        tr.fit(model, loader(x), loader(x, 4))
    except RuntimeError as error:
        saw("error", error)
    tr = trainer(x, max_epochs=1)
    tr.fit(model, loader(x), loader(x, 4))
    told(model, tr)


@situation
def signals(x: Extension) -> None:
    """Signal handlers of the program's own, and a signal that none of them minds."""

    def handler(number: int, frame: Any) -> None:
        note("call", f"handler({signal.Signals(number).name})")

    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, handler)

    class Sends(Model):
        def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
            if batch_idx == 1:
                os.kill(os.getpid(), signal.SIGUSR1)

    Sends.__module__ = __name__
    model, tr = x.make(Sends), trainer(x, max_epochs=1)
    tr.fit(model, loader(x))
    saw("handler", signal.getsignal(signal.SIGTERM) is handler)
    told(model, tr)


@situation
def init(x: Extension) -> None:
    """Models that are made under init_module, and data that are made in it."""
    tr = trainer(x, logger=False)
    with tr.init_module():
        model = x.make(Model)
        batches = loader(x, shuffle=True)
    tr.fit(model, batches)
    told(model, tr)


@situation
def fabric(x: Extension) -> None:
    """Fabric: wrappers, other methods than forward, checkpoints, mixed precision, loggers."""
    fab = module("fabric")

    class Methods(Net):
        def score(self, values: torch.Tensor) -> torch.Tensor:
            return self(values).sum()

    Methods.__module__ = __name__
    logger = x.make(module("fabric.loggers").CSVLogger, "logs")
    inner = x.make(module("fabric.plugins.io").TorchCheckpointIO)
    for chosen in ("32-true", "bf16-mixed"):
        strategy = x.make(
            module("fabric.strategies").SingleDeviceStrategy, device=torch.device("cpu"), checkpoint_io=inner
        )
        made = x.make(
            fab.Fabric,
            accelerator="cpu",
            devices=1,
            precision=chosen,
            strategy=strategy,
            loggers=[logger],
            callbacks=[x.make(object_with_hooks)],
        )
        net = x.make(Methods)
        optimizer = x.make(torch.optim.SGD, net.parameters(), lr=0.125)
        wrapped, stepped = made.setup(net, optimizer)
        if hasattr(wrapped, "mark_forward_method"):
            wrapped.mark_forward_method("score")
        batches = made.setup_dataloaders(loader(x))
        for step, batch in enumerate(batches):
            loss = wrapped(batch[0]).pow(2).mean()
            made.backward(loss)
            made.clip_gradients(wrapped, stepped, max_norm=0.5)
            stepped.step()
            stepped.zero_grad()
            made.log("loss", loss, step=step)
            made.call("on_step", step=step)
        made.save("f.ckpt", {"net": wrapped, "optimizer": stepped, "step": 3})
        saw("rest", made.load("f.ckpt", {"net": wrapped, "optimizer": stepped}))
        saw("score", wrapped.score(torch.ones(2, 4)) if hasattr(wrapped, "mark_forward_method") else 0)
        note("weights", weights(net))
    logger.finalize("success")


class object_with_hooks:  # noqa: N801
    def on_step(self, step: int) -> None:
        pass


@situation
def cli(x: Extension) -> None:
    """The command line, with classes of the program's own."""
    made = x.derived(module("pytorch.cli").LightningCLI)
    model = x.derived(Model)

    class Data(pl.LightningDataModule):
        def train_dataloader(self) -> Any:
            return loader(x)

    Data.__module__ = __name__
    arguments = ["fit", "--trainer.max_epochs=1", "--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false"]
    arguments += ["--trainer.default_root_dir=root", "--model.lr=0.5", "--seed_everything=1"]  # else 2.0 draws a seed
    made(model, x.derived(Data), args=arguments)


@situation
def nested(x: Extension) -> None:
    """Two Trainers at once: one evaluates in a hook of the other."""

    class Outer(Model):
        def on_train_epoch_end(self) -> None:
            other = trainer(x, logger=False, max_epochs=1)
            inner = x.make(Model)
            other.fit(inner, loader(x), loader(x, 4))
            saw("inner", other.callback_metrics["val_loss"])

    Outer.__module__ = __name__
    model = x.make(Outer)
    best = x.make(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss")
    tr = trainer(x, callbacks=[best])
    tr.fit(model, loader(x), loader(x, 4))
    told(model, tr)


@situation
def own_freeze(x: Extension) -> None:
    """Finetuning callbacks of the program's own: another freeze, and batch norm that is switched on again."""
    base = pl.callbacks.BackboneFinetuning

    class Modules(base):  # type: ignore[misc, valid-type]
        @staticmethod
        def freeze(modules: Any) -> None:
            for name, parameter in modules.named_parameters():
                parameter.requires_grad = name.endswith("bias")

    class Again(base):  # type: ignore[misc, valid-type]
        def freeze_before_training(self, pl_module: Any) -> None:
            super().freeze_before_training(pl_module)
            self.make_trainable([pl_module.backbone[1]])

    for cls in (Modules, Again):
        cls.__module__ = __name__
        model = x.make(Model)
        tr = trainer(x, callbacks=[x.make(cls, unfreeze_backbone_at_epoch=9, train_bn=False)])
        tr.fit(model, loader(x))
        told(model, tr)
        saw("trained", [name for name, p in torch.nn.Module.named_parameters(model) if p.requires_grad])


class Curriculum(Own):
    """A sampler whose set_epoch wants to know more."""

    def set_epoch(self, epoch: int, difficulty: int) -> None:  # type: ignore[override]
        note("call", f"Curriculum.set_epoch({epoch}, {difficulty})")
        self.epoch = difficulty


@situation
def own_set_epoch(x: Extension) -> None:
    """Two ranks, with such a sampler, which the program tells by itself."""
    spies.only_ranks = True
    sampler = x.make(Curriculum)

    class Tells(Model):
        def on_train_epoch_start(self) -> None:
            sampler.set_epoch(self.current_epoch, difficulty=self.current_epoch * 2)

    Tells.__module__ = __name__
    strategy = x.make(module("pytorch.strategies").DDPStrategy, start_method="fork")
    trainer(x, strategy=strategy, devices=2).fit(x.make(Tells), loader(x, sampler=sampler))


class Merged(torch.nn.Linear):
    """A layer that merges its adapter into its weights while it evaluates, as those of loralib do."""

    def __init__(self) -> None:
        super().__init__(4, 1)
        self.adapter = torch.nn.Parameter(torch.ones(1, 4))
        self.merged = False

    def train(self, mode: bool = True) -> Merged:
        super().train(mode)
        if mode == self.merged:
            self.merged = not mode
            with torch.no_grad():
                self.weight += -self.adapter if mode else self.adapter
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + (0 if self.merged else x @ self.adapter.T)


@situation
def merged(x: Extension) -> None:
    """A checkpoint that is due when a validation begins, and a model that has other weights while it evaluates."""

    class Merges(Model):
        def __init__(self) -> None:
            super().__init__()
            self.head = Merged()

        def on_validation_model_train(self) -> None:
            self.train()

    Merges.__module__ = __name__
    best = x.make(
        pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", every_n_train_steps=4, save_top_k=-1
    )
    tr = trainer(x, callbacks=[best], val_check_interval=4)
    model = x.make(Merges)
    tr.fit(model, loader(x), loader(x, 4))
    told(model, tr)


@situation
def replaced_freeze(x: Extension) -> None:
    """A freeze of the program's own, put in the place of Lightning's, that takes the modules only."""
    base = pl.callbacks.BaseFinetuning

    def freeze(modules: Any) -> None:
        for name, parameter in modules.named_parameters():
            parameter.requires_grad = name.endswith("bias")

    base.freeze = staticmethod(freeze)
    model = x.make(Model)
    callback = x.make(pl.callbacks.BackboneFinetuning, unfreeze_backbone_at_epoch=9, train_bn=False)
    trainer(x, callbacks=[callback]).fit(model, loader(x))
    saw("trained", [name for name, p in torch.nn.Module.named_parameters(model) if p.requires_grad])


class Halfway(torch.nn.Module):
    """An average of the program's own, which counts nothing."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.module = Net()

    def update_parameters(self, model: Any) -> None:
        note("call", "Halfway.update_parameters()")


@situation
def other_average(x: Extension) -> None:
    """WeightAveraging with an average of another class."""
    if not hasattr(pl.callbacks, "WeightAveraging"):
        return

    class Other(pl.callbacks.WeightAveraging):
        def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
            self._average_model = Halfway(pl_module)

        def _swap_models(self, pl_module: Any) -> None:
            note("call", "Other._swap_models()")

        def _copy_average_to_current(self, pl_module: Any) -> None:
            note("call", "Other._copy_average_to_current()")

    Other.__module__ = __name__
    model, tr = x.make(Model), trainer(x, callbacks=[x.make(Other)], enable_checkpointing=False)
    tr.fit(model, loader(x), loader(x, 4))
    told(model, tr)


@situation
def own_executor(x: Extension) -> None:
    """AsyncCheckpointIO with an executor of the program's own, which outlives the training."""
    from concurrent.futures import ThreadPoolExecutor

    class Shared(ThreadPoolExecutor):
        def shutdown(self, *arguments: Any, **named: Any) -> None:
            pass

    plugin = x.make(module("pytorch.plugins.io").AsyncCheckpointIO, module("pytorch.plugins.io").TorchCheckpointIO())
    plugin._executor = shared = Shared(max_workers=1)
    for _ in range(2):
        trainer(x, plugins=[plugin], max_epochs=1).fit(x.make(Model), loader(x))
        saw("kept", plugin._executor is shared)
    ThreadPoolExecutor.shutdown(shared)


@situation
def asked_rate(x: Extension) -> None:
    """A learning rate that is a property with a setter, beside one that is not to be asked for."""

    class Asked(Model):
        @property
        def lr(self) -> float:
            note("call", "Asked.lr")
            return float(vars(self).get("own_rate", 0.125))

        @lr.setter
        def lr(self, value: float) -> None:
            note("call", f"Asked.lr = {value:g}")
            vars(self)["own_rate"] = value

        @property
        def learning_rate(self) -> float:
            raise ValueError("on purpose: it is not known yet")

    Asked.__module__ = __name__
    model, tr = x.make(Asked), trainer(x, logger=False)
    x.make(module("pytorch.tuner").Tuner, tr).lr_find(
        model, loader(x, 32), num_training=14, early_stop_threshold=None, update_attr=True
    )
    tr.fit(model, loader(x))
    told(model, tr)


@situation
def remote(x: Extension) -> None:
    """Checkpoints on a file system of fsspec's, resumed, and in another place than their directory."""

    class Elsewhere(pl.callbacks.ModelCheckpoint):
        def format_checkpoint_name(self, *arguments: Any, **named: Any) -> str:
            return "memory://elsewhere/" + os.path.basename(super().format_checkpoint_name(*arguments, **named))

    Elsewhere.__module__ = __name__
    import fsspec

    found = ""
    for cls in (pl.callbacks.ModelCheckpoint, Elsewhere, Elsewhere):
        best = x.make(cls, dirpath="memory://best", monitor="val_loss", mode="max", save_top_k=1)
        tr = trainer(x, callbacks=[best], max_epochs=5 if found else 2)
        tr.fit(x.make(Model), loader(x), loader(x, 4), ckpt_path=found or None)
        found = best.best_model_path
        saw("remote", sorted(fsspec.filesystem("memory").find("/")))


@situation
def synced(x: Extension) -> None:
    """Two ranks, and a strategy that reduces in a way of its own."""
    spies.only_ranks = True

    class Reduces(module("pytorch.strategies").DDPStrategy):  # type: ignore[misc]
        def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
            note("call", f"Reduces.reduce({getattr(tensor, 'dtype', None)}, {reduce_op})")
            return super().reduce(tensor, group, reduce_op)

    class Synced(Model):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val_loss", self(batch[0]).pow(2).mean(), sync_dist=True)

    for cls in (Reduces, Synced):
        cls.__module__ = __name__
    strategy = x.make(Reduces, start_method="fork")
    tr = trainer(x, strategy=strategy, devices=2, max_epochs=1)
    tr.fit(x.make(Synced), loader(x), loader(x, 4))


@situation
def registries(x: Extension) -> None:
    """A strategy and an accelerator that the program has registered, by their names."""
    strategies, accelerators = module("pytorch.strategies"), module("pytorch.accelerators")
    own = x.derived(strategies.SingleDeviceStrategy)
    strategies.StrategyRegistry.register("own", own, description="own", override=True, device=torch.device("cpu"))
    kind = x.derived(accelerators.CPUAccelerator)
    accelerators.AcceleratorRegistry.register("own", kind, description="own", override=True)
    model = x.make(Model)
    tr = x.make(
        pl.Trainer,
        strategy="own",
        accelerator=x.make(accelerators.CPUAccelerator),
        max_epochs=1,
        logger=False,
        enable_progress_bar=False,
        default_root_dir="root",
    )
    saw("strategy", type(tr.strategy).__name__)
    tr.fit(model, loader(x), loader(x, 4))
    told(model, tr)


@situation
def entry_points(x: Extension) -> None:
    """A callback that comes by an entry point of an installed package."""
    group = f"{pl.__name__}.callbacks_factory"
    os.makedirs("site/own-1.0.dist-info")
    with open("site/own-1.0.dist-info/METADATA", "w") as file:
        file.write("Name: own\nVersion: 1.0\n")
    with open("site/own-1.0.dist-info/entry_points.txt", "w") as file:
        file.write(f"[{group}]\nown = {__name__}:own_callbacks\n")
    sys.path.insert(0, os.path.abspath("site"))
    model, tr = x.make(Model), trainer(x, max_epochs=1)
    tr.fit(model, loader(x))
    told(model, tr)


def own_callbacks() -> list[Any]:
    note("call", "own_callbacks()")
    return [EXTENSION.make(pl.callbacks.LambdaCallback, on_train_end=lambda *_: note("call", "own on_train_end"))]


@situation
def callers(x: Extension) -> None:
    """Hooks that look at who calls them."""

    class Looks(pl.Callback):
        def on_train_start(self, *_: Any) -> None:
            saw("caller", sys._getframe(1).f_code.co_name)

    class Looked(Model):
        def on_train_start(self) -> None:
            saw("caller", sys._getframe(1).f_code.co_name)

    for cls in (Looks, Looked):
        cls.__module__ = __name__
    trainer(x, callbacks=[x.make(Looks)], max_epochs=1).fit(x.make(Looked), loader(x))


@situation
def own_check(x: Extension) -> None:
    """Training that is resumed where a validation ended, with a check of the program's own on the loop."""
    for epochs in (1, 2):
        best = x.make(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", save_top_k=-1)
        model, tr = x.make(Model), trainer(x, callbacks=[best], max_epochs=epochs, val_check_interval=2)
        epoch_loop = tr.fit_loop.epoch_loop
        check = epoch_loop._should_check_val_fx

        def own(*arguments: Any, check: Any = check) -> Any:
            note("call", "own check")
            return check(*arguments)

        epoch_loop._should_check_val_fx = own
        path = os.path.join("best", sorted(os.listdir("best"))[0]) if epochs > 1 else None
        tr.fit(model, loader(x), loader(x, 4), ckpt_path=path)
        saw("still there", vars(epoch_loop).get("_should_check_val_fx") is own)


@situation
def traced(x: Extension) -> None:
    """A model with a traced part is searched for a learning rate and trained, and refuses another one's weights."""

    class Traced(Model):
        def __init__(self) -> None:
            super().__init__()
            self.part = torch.jit.trace(torch.nn.Linear(4, 4), torch.ones(2, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.backbone(self.part(x)))

    Traced.__module__ = __name__
    model, tr = x.make(Traced), trainer(x, logger=False, max_epochs=1)
    x.make(module("pytorch.tuner").Tuner, tr).lr_find(model, loader(x, 32), num_training=8)
    tr.fit(model, loader(x))
    try:
        model.load_state_dict({"head.weight": torch.ones(1, 4)})
    except RuntimeError as error:
        saw("refused", str(error))
    told(model, tr)


@situation
def black_box(x: Extension) -> None:
    """An optimizer that knows no parameters, only the model."""

    class Search(torch.optim.Optimizer):
        def __init__(self, model: Any) -> None:
            self.model, self.defaults, self.state = model, {}, {}  # type: ignore[assignment]
            self.param_groups = [{"lr": 0.125}]

        def step(self, closure: Any = None) -> Any:  # type: ignore[override]
            loss = closure()
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter.mul_(1 - self.param_groups[0]["lr"])
            return loss

        def zero_grad(self, *_: Any, **__: Any) -> None:
            pass

        def state_dict(self) -> Any:
            return {}

        def load_state_dict(self, state_dict: Any) -> None:
            pass

        def __repr__(self) -> str:
            return "Search"

    class Searched(Model):
        def configure_optimizers(self) -> Any:
            return Search(self)

    Searched.__module__ = __name__
    for epochs in (1, 2):
        model, tr = x.make(Searched), trainer(x, logger=False, max_epochs=epochs)
        tr.fit(model, loader(x), ckpt_path="searched.ckpt" if epochs > 1 else None)
        tr.save_checkpoint("searched.ckpt")
        told(model, tr)


@situation
def wrapping_optimizer(x: Extension) -> None:
    """An optimizer around another one, which it keeps under the name that Lightning's wrappers have for theirs."""

    class Around(torch.optim.Optimizer):
        def __init__(self, inner: Any) -> None:
            self._optimizer, self.defaults, self.state = inner, inner.defaults, inner.state
            self.param_groups = inner.param_groups

        def step(self, closure: Any = None) -> Any:  # type: ignore[override]
            note("call", "Around.step")
            return self._optimizer.step(closure)

        def zero_grad(self, *_: Any, **__: Any) -> None:
            self._optimizer.zero_grad()

        def state_dict(self) -> Any:
            return self._optimizer.state_dict()

        def load_state_dict(self, state_dict: Any) -> None:
            self._optimizer.load_state_dict(state_dict)

        def __repr__(self) -> str:
            return "Around"

    class Manual(Model):
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> None:  # type: ignore[override]
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(self(batch[0]).pow(2).mean())
            optimizer.step()

        def configure_optimizers(self) -> Any:
            return Around(torch.optim.SGD(self.parameters(), 0.125))

    Manual.__module__ = __name__
    model, tr = x.make(Manual), trainer(x, logger=False, max_epochs=1)
    tr.fit(model, loader(x))
    told(model, tr)
    fabric = module("fabric").Fabric(accelerator="cpu", devices=1)
    net = torch.nn.Linear(4, 1)
    wrapped, optimizer = fabric.setup(net, Around(torch.optim.SGD(net.parameters(), 0.125)))
    optimizer.load_state_dict(optimizer.state_dict())
    fabric.backward(wrapped(torch.ones(2, 4)).sum())
    optimizer.step()


@situation
def proxied(x: Extension) -> None:
    """Transparent proxies, as tracing tools make them, around what a strategy, a profiler and a callback have."""

    def noted(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        note("call", f"proxied {wrapped.__name__} {shown(args)} {sorted(kwargs)}")
        return wrapped(*args, **kwargs)

    class Synced(Model):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val_loss", torch.tensor(1.0), sync_dist=True)

    Synced.__module__ = __name__
    callbacks, idle = pl.callbacks, pl.profilers.PassThroughProfiler
    freeze = wrapt.FunctionWrapper(callbacks.BaseFinetuning.freeze, noted)
    profile = functools.wraps(idle.profile)(lambda self, name: PROFILE(self, f"{name} in the program's own"))
    best = x.make(callbacks.ModelCheckpoint, dirpath="best", save_top_k=-1)
    tuning = x.make(callbacks.BackboneFinetuning, unfreeze_backbone_at_epoch=9, train_bn=False)
    ddp = module("pytorch.strategies").DDPStrategy(process_group_backend="gloo")
    tr = trainer(x, strategy=ddp, logger=False, callbacks=[best, tuning])
    for name in ("broadcast", "reduce"):
        setattr(tr.strategy, name, wrapt.FunctionWrapper(getattr(tr.strategy, name), noted))
    log = logging.getLogger(f"{pl.__name__}.trainer.call")
    with (
        mock.patch.object(callbacks.BaseFinetuning, "freeze", staticmethod(freeze)),
        mock.patch.object(idle, "start", wrapt.FunctionWrapper(idle.start, noted)),
        mock.patch.object(idle, "profile", profile),
        mock.patch.object(log, "debug", lambda message, *_: note("call", f"own debug {message}")),
    ):
        tr.fit(x.make(Synced), loader(x), loader(x, 4))
    torch.distributed.destroy_process_group()


PROFILE = pl.profilers.Profiler.profile


class Incomparable(type):
    def __eq__(cls, other: Any) -> bool:
        note("call", f"compared with {other}")
        raise TypeError("on purpose: not comparable")

    __hash__ = type.__hash__


class Spec(metaclass=Incomparable):
    pass


@situation
def asked_early(x: Extension) -> None:
    """What a program knows only later, or lets nobody compare, and a checkpoint that knows the one before."""

    class Planned(Model):
        plan: Any = None

        def __init__(self) -> None:
            pl.LightningModule.__init__(self)
            self.backbone, self.head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

        @property
        def lr(self) -> float:
            if self.plan is None:
                raise RuntimeError("on purpose: no schedule yet")
            return self.plan

        def on_train_start(self) -> None:
            self.plan = 0.125

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.125)

    class Kept(pl.callbacks.ModelCheckpoint):
        def _save_checkpoint(self, trainer: Any, filepath: str) -> None:
            saw("before", os.path.basename(self._last_checkpoint_saved))
            super()._save_checkpoint(trainer, filepath)

    Planned.__module__ = Kept.__module__ = __name__
    trainer(x, logger=False, fast_dev_run=True, callbacks=[pl.callbacks.LearningRateFinder()]).fit(
        x.make(Planned), loader(x)
    )
    model = x.make(Model)
    model.hparams["spec"] = Spec()
    tr = trainer(x, logger=False, callbacks=[x.make(Kept, dirpath="kept", save_last=True, save_top_k=0)])
    tr.fit(model, loader(x))
