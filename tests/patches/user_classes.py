"""Programs with custom classes that a patch broke, or could break.

The tests of the patches name them, and the differential test runs all of them.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from typing import Any
from unittest import mock

import torch
import wrapt
from torch.utils.data import DataLoader

from tests.differential.observing import MultiprocessingDDP, Tuner, module, note, observe, pl, shown
from tests.differential.programs.extended import Model, Own, best, data, loader, told, train, trainer


def averaging(observe: Any, own: Any) -> None:
    """WeightAveraging (since 2.6.0), and a subclass that updates Lightning's average."""

    class Average(pl.callbacks.WeightAveraging):
        def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
            with torch.no_grad():
                for mean, new in zip(self._average_model.module.parameters(), torch.nn.Module.parameters(pl_module)):
                    mean.lerp_(new, 0.25)

    for cls in (pl.callbacks.WeightAveraging, Average):
        train(own, callbacks=[own(cls), best(own)])


class Odd:
    """An object in a checkpoint with custom copy and pickle methods."""

    def __init__(self) -> None:
        self.itself = self

    def __deepcopy__(self, memo: Any) -> Any:
        note("call", "Odd.__deepcopy__()")
        raise RuntimeError("not to be copied")


def asynchronous(observe: Any, own: Any) -> None:
    """AsyncCheckpointIO around a custom CheckpointIO; the checkpoint has tensor subclasses."""

    class Holds(Model):
        def on_save_checkpoint(self, checkpoint: Any) -> None:
            checkpoint.update(parameter=self.head.bias, view=torch.ones(1).expand(100), odd=Odd())

    io = module("pytorch.plugins.io")
    plugin = own(io.AsyncCheckpointIO, own(io.TorchCheckpointIO))
    _, tr = train(own, Holds, plugins=[plugin], max_epochs=1)
    found = torch.load(tr.checkpoint_callback.best_model_path, weights_only=False)
    observe("kinds", [type(found[key]).__name__ for key in ("parameter", "view", "odd")])
    observe("held", found["view"].untyped_storage().nbytes())


class Stateful(DataLoader[Any]):
    """A stateful loader."""

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
        kept = own(pl.callbacks.ModelCheckpoint, dirpath="best", every_n_train_steps=2, save_top_k=-1)
        path = os.path.join("best", sorted(os.listdir("best"))[-1]) if epochs > 1 else None
        train(own, Model, own(Stateful, data(), batch_size=2), max_epochs=epochs, callbacks=[kept], path=path)


def tuner(observe: Any, own: Any) -> None:
    """The learning rate finder and the batch size finder, then a training."""
    model, tr = own(Model), trainer(own, logger=False)
    tuned = own(Tuner, tr)

    class Sized(pl.LightningDataModule):
        batch_size = 2

        def train_dataloader(self) -> Any:
            return loader(own, 32, self.batch_size)

        def val_dataloader(self) -> Any:
            return loader(own, 4, self.batch_size)

    made = own(Sized)
    found = tuned.lr_find(model, datamodule=made, num_training=8, update_attr=True)
    observe("suggested", found.suggestion(skip_begin=1, skip_end=1))
    observe("size", tuned.scale_batch_size(model, datamodule=made, max_trials=2, steps_per_trial=1))
    tr.fit(model, datamodule=made)
    told(model, tr)


def finetuning(observe: Any, own: Any) -> None:
    """A backbone that is frozen at first, with batch norm in training mode or not."""
    for train_bn in (True, False):
        given = {"unfreeze_backbone_at_epoch": 1, "train_bn": train_bn, "verbose": False}
        train(own, callbacks=[own(pl.callbacks.BackboneFinetuning, **given)], max_epochs=3)


def progress(observe: Any, own: Any) -> None:
    """Both progress bars of Lightning, with a custom entry among their metrics."""

    class Shown(Model):
        def on_train_batch_end(self, *_: Any) -> None:
            self.trainer.progress_bar_metrics["own"] = torch.ones(3).numpy()
            observe("bar", dict(self.trainer.progress_bar_metrics))

    for bar in (pl.callbacks.RichProgressBar, pl.callbacks.TQDMProgressBar):
        train(own, Shown, callbacks=[own(bar)], enable_progress_bar=True, max_epochs=1)


def own_freeze(observe: Any, own: Any) -> None:
    """Custom finetuning callbacks: another freeze, and batch norm that is enabled again."""
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
        model, _ = train(own, callbacks=[own(cls, unfreeze_backbone_at_epoch=9, train_bn=False)])
        observe("trained", [name for name, p in torch.nn.Module.named_parameters(model) if p.requires_grad])


class Curriculum(Own):
    """A sampler whose set_epoch has another parameter."""

    def set_epoch(self, epoch: int, difficulty: int) -> None:  # type: ignore[override]
        note("call", f"Curriculum.set_epoch({epoch}, {difficulty})")
        self.epoch = difficulty


def own_set_epoch(observe: Any, own: Any) -> None:
    """Two ranks with such a sampler, whose set_epoch the program calls."""
    sampler = own(Curriculum)

    class Tells(Model):
        def on_train_epoch_start(self) -> None:
            sampler.set_epoch(self.current_epoch, difficulty=self.current_epoch * 2)

    strategy = own(MultiprocessingDDP, start_method="fork")
    trainer(own, strategy=strategy, devices=2).fit(own(Tells), loader(own, sampler=sampler))


class Merged(torch.nn.Linear):
    """A layer that merges its adapter into its weights in evaluation mode, like those of loralib."""

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
    """A checkpoint that is due when a validation begins, and a model with other weights in evaluation mode."""

    class Merges(Model):
        def __init__(self) -> None:
            super().__init__()
            self.head = Merged()

        def on_validation_model_train(self) -> None:
            self.train()

    train(own, Merges, callbacks=[best(own, every_n_train_steps=4)], val_check_interval=4)


def replaced_freeze(observe: Any, own: Any) -> None:
    """A custom freeze that replaces Lightning's, with the modules as its only parameter."""
    base = pl.callbacks.BaseFinetuning

    def freeze(modules: Any) -> None:
        for name, parameter in modules.named_parameters():
            parameter.requires_grad = name.endswith("bias")

    base.freeze = staticmethod(freeze)
    callback = own(pl.callbacks.BackboneFinetuning, unfreeze_backbone_at_epoch=9, train_bn=False)
    model, _ = train(own, callbacks=[callback])
    observe("trained", [name for name, p in torch.nn.Module.named_parameters(model) if p.requires_grad])


class Halfway(torch.nn.Module):
    """A custom average without a counter."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.module = torch.nn.Linear(1, 1)

    def update_parameters(self, model: Any) -> None:
        note("call", "Halfway.update_parameters()")


def other_average(observe: Any, own: Any) -> None:
    """WeightAveraging with an average of another class."""

    class Other(pl.callbacks.WeightAveraging):
        def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
            self._average_model = Halfway(pl_module)

        def _swap_models(self, pl_module: Any) -> None:
            note("call", "Other._swap_models()")

        def _copy_average_to_current(self, pl_module: Any) -> None:
            note("call", "Other._copy_average_to_current()")

    train(own, callbacks=[own(Other)], enable_checkpointing=False)


def own_executor(observe: Any, own: Any) -> None:
    """AsyncCheckpointIO with a custom executor, which outlives the training."""
    from concurrent.futures import ThreadPoolExecutor

    class Shared(ThreadPoolExecutor):
        def shutdown(self, *arguments: Any, **named: Any) -> None:
            pass

    plugin = own(module("pytorch.plugins.io").AsyncCheckpointIO, module("pytorch.plugins.io").TorchCheckpointIO())
    plugin._executor = shared = Shared(max_workers=1)
    for _ in range(2):
        train(own, plugins=[plugin], max_epochs=1)
        observe("kept", plugin._executor is shared)
    ThreadPoolExecutor.shutdown(shared)


def asked_rate(observe: Any, own: Any) -> None:
    """A learning rate property with a setter, and another property that must not be read."""

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
    own(Tuner, tr).lr_find(model, loader(own, 32), num_training=14, early_stop_threshold=None, update_attr=True)
    tr.fit(model, loader(own))
    told(model, tr)


def remote(observe: Any, own: Any) -> None:
    """Checkpoints on an fsspec file system; the run is resumed with another directory."""

    class Elsewhere(pl.callbacks.ModelCheckpoint):
        def format_checkpoint_name(self, *arguments: Any, **named: Any) -> str:
            return "memory://elsewhere/" + os.path.basename(super().format_checkpoint_name(*arguments, **named))

    import fsspec

    found = ""
    for cls in (pl.callbacks.ModelCheckpoint, Elsewhere, Elsewhere):
        kept = best(own, cls, dirpath="memory://best", mode="max", save_top_k=1)
        train(own, callbacks=[kept], max_epochs=5 if found else 2, path=found or None)
        found = kept.best_model_path
        observe("remote", sorted(fsspec.filesystem("memory").find("/")))


def synced(observe: Any, own: Any) -> None:
    """Two ranks with a strategy that overrides reduce."""

    class Reduces(MultiprocessingDDP):  # type: ignore[misc]
        def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
            note("call", f"Reduces.reduce({getattr(tensor, 'dtype', None)}, {reduce_op})")
            return super().reduce(tensor, group, reduce_op)

    class Synced(Model):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val_loss", self(batch[0]).pow(2).mean(), sync_dist=True)

    strategy = own(Reduces, start_method="fork")
    trainer(own, strategy=strategy, devices=2, max_epochs=1).fit(own(Synced), loader(own), loader(own, 4))


def callers(observe: Any, own: Any) -> None:
    """Hooks that inspect their callers."""

    class Looks(pl.Callback):
        def on_train_start(self, *_: Any) -> None:
            observe("caller", sys._getframe(1).f_code.co_name)

    class Looked(Model):
        def on_train_start(self) -> None:
            observe("caller", sys._getframe(1).f_code.co_name)

    train(own, Looked, callbacks=[own(Looks)], max_epochs=1)


def own_check(observe: Any, own: Any) -> None:
    """Training that is resumed after a validation, with a custom check on the loop."""
    for epochs in (1, 2):
        model, tr = own(Model), trainer(own, callbacks=[best(own)], max_epochs=epochs, val_check_interval=2)
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
    """A model with a traced part: search, training, and the weights of another model, which it refuses."""

    class Traced(Model):
        def __init__(self) -> None:
            super().__init__()
            self.part = torch.jit.trace(torch.nn.Linear(4, 4), torch.ones(2, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.backbone(self.part(x)))

    model, tr = own(Traced), trainer(own, logger=False, max_epochs=1)
    own(Tuner, tr).lr_find(model, loader(own, 32), num_training=8)
    tr.fit(model, loader(own))
    try:
        model.load_state_dict({"head.weight": torch.ones(1, 4)})
    except RuntimeError as error:
        observe("refused", str(error))
    told(model, tr)


def black_box(observe: Any, own: Any) -> None:
    """An optimizer without parameters, which only has the model."""

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
    """An optimizer that wraps another one in an attribute with the same name as in Lightning's wrappers."""

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

    train(own, Manual, logger=False, max_epochs=1)
    fabric = module("fabric").Fabric(accelerator="cpu", devices=1)
    net = torch.nn.Linear(4, 1)
    wrapped, optimizer = fabric.setup(net, Around(torch.optim.SGD(net.parameters(), 0.125)))
    optimizer.load_state_dict(optimizer.state_dict())
    fabric.backward(wrapped(torch.ones(2, 4)).sum())
    optimizer.step()


def proxied(observe: Any, own: Any) -> None:
    """Transparent proxies, like those of tracing tools, around attributes of a strategy, a profiler and a callback."""

    def noted(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        note("call", f"proxied {wrapped.__name__} {shown(args)} {sorted(kwargs)}")
        return wrapped(*args, **kwargs)

    class Synced(Model):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val_loss", torch.tensor(1.0), sync_dist=True)

    callbacks, idle = pl.callbacks, pl.profilers.PassThroughProfiler
    freeze = wrapt.FunctionWrapper(callbacks.BaseFinetuning.freeze, noted)
    profile = functools.wraps(idle.profile)(lambda self, name: PROFILE(self, f"{name} in the program's own"))
    kept = own(callbacks.ModelCheckpoint, dirpath="best", save_top_k=-1)
    tuning = own(callbacks.BackboneFinetuning, unfreeze_backbone_at_epoch=9, train_bn=False)
    ddp = module("pytorch.strategies").DDPStrategy(process_group_backend="gloo")
    tr = trainer(own, strategy=ddp, logger=False, callbacks=[kept, tuning])
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
    """Values that are set late or can't be compared, and a checkpoint that refers to the previous one."""

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
    for given in ({"dirpath": "kept", "save_top_k": 0}, {"dirpath": "memory://kept", "every_n_epochs": 3}):
        tr = trainer(own, logger=False, callbacks=[own(Kept, save_last=True, **given)])
        tr.fit(model, loader(own))
