"""Programs all of whose parts may be extended (``own``). They execute what the default patches replace.

All of them work on every release that has what they use.
"""

from __future__ import annotations

import functools
import logging
import os
import signal
import sys
from typing import Any
from unittest import mock

import torch
import wrapt
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Sampler, TensorDataset

from tests.differential.observing import Watch, module, note, observe, pl, shown, tensors_of, weights


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


def between(observe: Any, own: Any) -> None:
    """Checkpoints at steps of their own, by the same metric."""
    best = own(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", every_n_train_steps=1, save_top_k=-1)
    train(own(Model), trainer(own, callbacks=[best], val_check_interval=2), loader(own), loader(own, 4))


def resumed(observe: Any, own: Any) -> None:
    """A training in two parts, from a checkpoint at the end of an epoch; data in order."""
    for epochs in (1, 3):
        best = own(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", save_last=True, save_top_k=2)
        model = own(Model)
        tr = trainer(own, callbacks=[best], max_epochs=epochs)
        path = "best/last.ckpt" if epochs > 1 else None
        train(model, tr, loader(own), loader(own, 4), ckpt_path=path)
    tr.validate(model, loader(own, 4), ckpt_path="best", verbose=False)


def resumed_shuffled(observe: Any, own: Any) -> None:
    """The same with shuffled data."""
    for epochs in (1, 3):
        model = own(Model)
        pl.seed_everything(1)
        tr = trainer(own, max_epochs=epochs)
        tr.fit(model, loader(own, shuffle=True), ckpt_path="c.ckpt" if epochs > 1 else None)
        tr.save_checkpoint("c.ckpt")
        told(model, tr)


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


def finders(observe: Any, own: Any) -> None:
    """The finders as callbacks."""

    class Found(Model):
        def train_dataloader(self) -> Any:
            return loader(own, 32, self.batch_size)

        def val_dataloader(self) -> Any:
            return loader(own, 4, self.batch_size)

    model = own(Found)
    callbacks = [
        own(pl.callbacks.LearningRateFinder, num_training_steps=8),
        own(pl.callbacks.BatchSizeFinder, max_trials=2, steps_per_trial=1),
    ]
    tr = trainer(own, callbacks=callbacks, logger=False, max_epochs=1)
    train(model, tr)


def finetuning(observe: Any, own: Any) -> None:
    """A backbone that is frozen at first, with its batch norm in training or not."""
    for train_bn in (True, False):
        model = own(Model)
        callback = own(pl.callbacks.BackboneFinetuning, unfreeze_backbone_at_epoch=1, train_bn=train_bn, verbose=False)
        tr = trainer(own, callbacks=[callback], max_epochs=3)
        train(model, tr, loader(own))


def swa(observe: Any, own: Any) -> None:
    train(
        own(Model),
        trainer(
            own, callbacks=[own(pl.callbacks.StochasticWeightAveraging, swa_lrs=0.01, swa_epoch_start=1)], max_epochs=4
        ),
        loader(own),
        loader(own, 4),
    )


def averaging(observe: Any, own: Any) -> None:
    """WeightAveraging, from 2.6.0 on, with validation and checkpoints."""
    if not hasattr(pl.callbacks, "WeightAveraging"):
        return
    model = own(Model)
    best = own(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", save_top_k=-1)
    tr = trainer(own, callbacks=[own(pl.callbacks.WeightAveraging), best])
    train(model, tr, loader(own), loader(own, 4))


def own_average(observe: Any, own: Any) -> None:
    """A subclass that averages by itself, into the average that Lightning keeps."""
    if not hasattr(pl.callbacks, "WeightAveraging"):
        return

    class Average(pl.callbacks.WeightAveraging):
        def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
            with torch.no_grad():
                for own, new in zip(self._average_model.module.parameters(), torch.nn.Module.parameters(pl_module)):
                    own.lerp_(new, 0.25)

    train(own(Model), trainer(own, callbacks=[own(Average)]), loader(own), loader(own, 4))


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


class Odd:
    """What a program's checkpoint may hold: an object that says how it is copied and pickled."""

    def __init__(self) -> None:
        self.itself = self

    def __deepcopy__(self, memo: Any) -> Any:
        note("call", "Odd.__deepcopy__()")
        raise RuntimeError("not to be copied")


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


def manual(observe: Any, own: Any) -> None:
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

    train(own(ByHand), trainer(own), loader(own), loader(own, 4))


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


def init(observe: Any, own: Any) -> None:
    """Models that are made under init_module, and data that are made in it."""
    tr = trainer(own, logger=False)
    with tr.init_module():
        model = own(Model)
        batches = loader(own, shuffle=True)
    train(model, tr, batches)


def fabric(observe: Any, own: Any) -> None:
    """Fabric: wrappers, other methods than forward, checkpoints, mixed precision, loggers."""
    fab = module("fabric")

    class Methods(Net):
        def score(self, values: torch.Tensor) -> torch.Tensor:
            return self(values).sum()

    logger = own(module("fabric.loggers").CSVLogger, "logs")
    inner = own(module("fabric.plugins.io").TorchCheckpointIO)
    for chosen in ("32-true", "bf16-mixed"):
        strategy = own(
            module("fabric.strategies").SingleDeviceStrategy, device=torch.device("cpu"), checkpoint_io=inner
        )
        made = own(
            fab.Fabric,
            accelerator="cpu",
            devices=1,
            precision=chosen,
            strategy=strategy,
            loggers=[logger],
            callbacks=[own(object_with_hooks)],
        )
        net = own(Methods)
        optimizer = own(torch.optim.SGD, net.parameters(), lr=0.125)
        wrapped, stepped = made.setup(net, optimizer)
        if hasattr(wrapped, "mark_forward_method"):
            wrapped.mark_forward_method("score")
        batches = made.setup_dataloaders(loader(own))
        for step, batch in enumerate(batches):
            loss = wrapped(batch[0]).pow(2).mean()
            made.backward(loss)
            made.clip_gradients(wrapped, stepped, max_norm=0.5)
            stepped.step()
            stepped.zero_grad()
            made.log("loss", loss, step=step)
            made.call("on_step", step=step)
        made.save("f.ckpt", {"net": wrapped, "optimizer": stepped, "step": 3})
        observe("rest", made.load("f.ckpt", {"net": wrapped, "optimizer": stepped}))
        observe("score", wrapped.score(torch.ones(2, 4)) if hasattr(wrapped, "mark_forward_method") else 0)
        note("weights", weights(net))
    logger.finalize("success")


class object_with_hooks:  # noqa: N801
    def on_step(self, step: int) -> None:
        pass


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


def own_freeze(observe: Any, own: Any) -> None:
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
        model = own(Model)
        tr = trainer(own, callbacks=[own(cls, unfreeze_backbone_at_epoch=9, train_bn=False)])
        train(model, tr, loader(own))
        observe("trained", [name for name, p in torch.nn.Module.named_parameters(model) if p.requires_grad])


class Curriculum(Own):
    """A sampler whose set_epoch wants to know more."""

    def set_epoch(self, epoch: int, difficulty: int) -> None:  # type: ignore[override]
        note("call", f"Curriculum.set_epoch({epoch}, {difficulty})")
        self.epoch = difficulty


def own_set_epoch(observe: Any, own: Any) -> None:
    """Two ranks, with such a sampler, which the program tells by itself."""
    sampler = own(Curriculum)

    class Tells(Model):
        def on_train_epoch_start(self) -> None:
            sampler.set_epoch(self.current_epoch, difficulty=self.current_epoch * 2)

    strategy = own(module("pytorch.strategies").DDPStrategy, start_method="fork")
    trainer(own, strategy=strategy, devices=2).fit(own(Tells), loader(own, sampler=sampler))


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


def merged(observe: Any, own: Any) -> None:
    """A checkpoint that is due when a validation begins, and a model that has other weights while it evaluates."""

    class Merges(Model):
        def __init__(self) -> None:
            super().__init__()
            self.head = Merged()

        def on_validation_model_train(self) -> None:
            self.train()

    best = own(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", every_n_train_steps=4, save_top_k=-1)
    tr = trainer(own, callbacks=[best], val_check_interval=4)
    model = own(Merges)
    train(model, tr, loader(own), loader(own, 4))


def replaced_freeze(observe: Any, own: Any) -> None:
    """A freeze of the program's own, put in the place of Lightning's, that takes the modules only."""
    base = pl.callbacks.BaseFinetuning

    def freeze(modules: Any) -> None:
        for name, parameter in modules.named_parameters():
            parameter.requires_grad = name.endswith("bias")

    base.freeze = staticmethod(freeze)
    model = own(Model)
    callback = own(pl.callbacks.BackboneFinetuning, unfreeze_backbone_at_epoch=9, train_bn=False)
    trainer(own, callbacks=[callback]).fit(model, loader(own))
    observe("trained", [name for name, p in torch.nn.Module.named_parameters(model) if p.requires_grad])


class Halfway(torch.nn.Module):
    """An average of the program's own, which counts nothing."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.module = Net()

    def update_parameters(self, model: Any) -> None:
        note("call", "Halfway.update_parameters()")


def other_average(observe: Any, own: Any) -> None:
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

    train(own(Model), trainer(own, callbacks=[own(Other)], enable_checkpointing=False), loader(own), loader(own, 4))


def own_executor(observe: Any, own: Any) -> None:
    """AsyncCheckpointIO with an executor of the program's own, which outlives the training."""
    from concurrent.futures import ThreadPoolExecutor

    class Shared(ThreadPoolExecutor):
        def shutdown(self, *arguments: Any, **named: Any) -> None:
            pass

    plugin = own(module("pytorch.plugins.io").AsyncCheckpointIO, module("pytorch.plugins.io").TorchCheckpointIO())
    plugin._executor = shared = Shared(max_workers=1)
    for _ in range(2):
        trainer(own, plugins=[plugin], max_epochs=1).fit(own(Model), loader(own))
        observe("kept", plugin._executor is shared)
    ThreadPoolExecutor.shutdown(shared)


def asked_rate(observe: Any, own: Any) -> None:
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

    model, tr = own(Asked), trainer(own, logger=False)
    own(module("pytorch.tuner").Tuner, tr).lr_find(
        model, loader(own, 32), num_training=14, early_stop_threshold=None, update_attr=True
    )
    train(model, tr, loader(own))


def remote(observe: Any, own: Any) -> None:
    """Checkpoints on a file system of fsspec's, resumed, and in another place than their directory."""

    class Elsewhere(pl.callbacks.ModelCheckpoint):
        def format_checkpoint_name(self, *arguments: Any, **named: Any) -> str:
            return "memory://elsewhere/" + os.path.basename(super().format_checkpoint_name(*arguments, **named))

    import fsspec

    found = ""
    for cls in (pl.callbacks.ModelCheckpoint, Elsewhere, Elsewhere):
        best = own(cls, dirpath="memory://best", monitor="val_loss", mode="max", save_top_k=1)
        tr = trainer(own, callbacks=[best], max_epochs=5 if found else 2)
        tr.fit(own(Model), loader(own), loader(own, 4), ckpt_path=found or None)
        found = best.best_model_path
        observe("remote", sorted(fsspec.filesystem("memory").find("/")))


def synced(observe: Any, own: Any) -> None:
    """Two ranks, and a strategy that reduces in a way of its own."""

    class Reduces(module("pytorch.strategies").DDPStrategy):  # type: ignore[misc]
        def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
            note("call", f"Reduces.reduce({getattr(tensor, 'dtype', None)}, {reduce_op})")
            return super().reduce(tensor, group, reduce_op)

    class Synced(Model):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val_loss", self(batch[0]).pow(2).mean(), sync_dist=True)

    strategy = own(Reduces, start_method="fork")
    tr = trainer(own, strategy=strategy, devices=2, max_epochs=1)
    tr.fit(own(Synced), loader(own), loader(own, 4))


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


def own_callbacks() -> list[Any]:
    note("call", "own_callbacks()")
    return [Model.own(pl.callbacks.LambdaCallback, on_train_end=lambda *_: note("call", "own on_train_end"))]


def callers(observe: Any, own: Any) -> None:
    """Hooks that look at who calls them."""

    class Looks(pl.Callback):
        def on_train_start(self, *_: Any) -> None:
            observe("caller", sys._getframe(1).f_code.co_name)

    class Looked(Model):
        def on_train_start(self) -> None:
            observe("caller", sys._getframe(1).f_code.co_name)

    trainer(own, callbacks=[own(Looks)], max_epochs=1).fit(own(Looked), loader(own))


def own_check(observe: Any, own: Any) -> None:
    """Training that is resumed where a validation ended, with a check of the program's own on the loop."""
    for epochs in (1, 2):
        best = own(pl.callbacks.ModelCheckpoint, dirpath="best", monitor="val_loss", save_top_k=-1)
        model, tr = own(Model), trainer(own, callbacks=[best], max_epochs=epochs, val_check_interval=2)
        epoch_loop = tr.fit_loop.epoch_loop
        check = epoch_loop._should_check_val_fx

        def checked(*arguments: Any, check: Any = check) -> Any:
            note("call", "own check")
            return check(*arguments)

        epoch_loop._should_check_val_fx = checked
        path = os.path.join("best", sorted(os.listdir("best"))[0]) if epochs > 1 else None
        tr.fit(model, loader(own), loader(own, 4), ckpt_path=path)
        observe("still there", vars(epoch_loop).get("_should_check_val_fx") is checked)


def traced(observe: Any, own: Any) -> None:
    """A model with a traced part is searched for a learning rate and trained, and refuses another one's weights."""

    class Traced(Model):
        def __init__(self) -> None:
            super().__init__()
            self.part = torch.jit.trace(torch.nn.Linear(4, 4), torch.ones(2, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.backbone(self.part(x)))

    model, tr = own(Traced), trainer(own, logger=False, max_epochs=1)
    own(module("pytorch.tuner").Tuner, tr).lr_find(model, loader(own, 32), num_training=8)
    tr.fit(model, loader(own))
    try:
        model.load_state_dict({"head.weight": torch.ones(1, 4)})
    except RuntimeError as error:
        observe("refused", str(error))
    told(model, tr)


def black_box(observe: Any, own: Any) -> None:
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

    for epochs in (1, 2):
        model, tr = own(Searched), trainer(own, logger=False, max_epochs=epochs)
        tr.fit(model, loader(own), ckpt_path="searched.ckpt" if epochs > 1 else None)
        tr.save_checkpoint("searched.ckpt")
        told(model, tr)


def wrapping_optimizer(observe: Any, own: Any) -> None:
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

    train(own(Manual), trainer(own, logger=False, max_epochs=1), loader(own))
    fabric = module("fabric").Fabric(accelerator="cpu", devices=1)
    net = torch.nn.Linear(4, 1)
    wrapped, optimizer = fabric.setup(net, Around(torch.optim.SGD(net.parameters(), 0.125)))
    optimizer.load_state_dict(optimizer.state_dict())
    fabric.backward(wrapped(torch.ones(2, 4)).sum())
    optimizer.step()


def proxied(observe: Any, own: Any) -> None:
    """Transparent proxies, as tracing tools make them, around what a strategy, a profiler and a callback have."""

    def noted(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        note("call", f"proxied {wrapped.__name__} {shown(args)} {sorted(kwargs)}")
        return wrapped(*args, **kwargs)

    class Synced(Model):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val_loss", torch.tensor(1.0), sync_dist=True)

    callbacks, idle = pl.callbacks, pl.profilers.PassThroughProfiler
    freeze = wrapt.FunctionWrapper(callbacks.BaseFinetuning.freeze, noted)
    profile = functools.wraps(idle.profile)(lambda self, name: PROFILE(self, f"{name} in the program's own"))
    best = own(callbacks.ModelCheckpoint, dirpath="best", save_top_k=-1)
    tuning = own(callbacks.BackboneFinetuning, unfreeze_backbone_at_epoch=9, train_bn=False)
    ddp = module("pytorch.strategies").DDPStrategy(process_group_backend="gloo")
    tr = trainer(own, strategy=ddp, logger=False, callbacks=[best, tuning])
    for name in ("broadcast", "reduce"):
        setattr(tr.strategy, name, wrapt.FunctionWrapper(getattr(tr.strategy, name), noted))
    log = logging.getLogger(f"{pl.__name__}.trainer.call")
    with (
        mock.patch.object(callbacks.BaseFinetuning, "freeze", staticmethod(freeze)),
        mock.patch.object(idle, "start", wrapt.FunctionWrapper(idle.start, noted)),
        mock.patch.object(idle, "profile", profile),
        mock.patch.object(log, "debug", lambda message, *_: note("call", f"own debug {message}")),
    ):
        tr.fit(own(Synced), loader(own), loader(own, 4))
    torch.distributed.destroy_process_group()


PROFILE = pl.profilers.Profiler.profile


class Incomparable(type):
    def __eq__(cls, other: Any) -> bool:
        note("call", f"compared with {other}")
        raise TypeError("on purpose: not comparable")

    __hash__ = type.__hash__


class Spec(metaclass=Incomparable):
    pass


def asked_early(observe: Any, own: Any) -> None:
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
            observe("before", os.path.basename(self._last_checkpoint_saved))
            super()._save_checkpoint(trainer, filepath)

    trainer(own, logger=False, fast_dev_run=True, callbacks=[pl.callbacks.LearningRateFinder()]).fit(
        own(Planned), loader(own)
    )
    model = own(Model)
    model.hparams["spec"] = Spec()
    tr = trainer(own, logger=False, callbacks=[own(Kept, dirpath="kept", save_last=True, save_top_k=0)])
    tr.fit(model, loader(own))
