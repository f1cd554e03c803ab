"""Run configurations without interruption, and also stopped and resumed at several places, and compare the rest.

Runs in a process with the Lightning and the patches of its variant (see ``resume.py``).

The batches of a configuration are a function of epoch and batch index, unless its loader is stateful: a loader without
state starts over in a resumed run, whatever Lightning does.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
import warnings
from typing import Any, Callable, Optional

if os.environ.get("SCENARIO_SHIM") == "1":
    import lightning_patches  # noqa: F401

import torch
from torch.optim import lr_scheduler as lrs
from torch.utils.data import DataLoader, IterableDataset

if os.environ["SCENARIO_NAMESPACE"] == "lightning":
    import lightning.pytorch as pl
    from lightning.pytorch import callbacks as cb
    from lightning.pytorch.loggers.logger import Logger
    from lightning.pytorch.utilities import CombinedLoader
else:
    import pytorch_lightning as pl
    from pytorch_lightning import callbacks as cb
    from pytorch_lightning.loggers.logger import Logger
    from pytorch_lightning.utilities import CombinedLoader

BATCHES = 4
EPOCHS = 4
ROWS = torch.randn(64, 4, generator=torch.Generator().manual_seed(1))
STOPS = ("first batch", "within", "last batch", "epoch end", "validation", "finished")
TRACE: list[list[Any]] = []
"""What the running fit has done: kind of the event, and its values."""


def note(kind: str, *values: Any) -> None:
    TRACE.append([kind, *values])


def number(value: Any) -> Any:
    """Return a value for JSON, with rounded numbers."""
    if isinstance(value, dict):
        return {str(key): number(one) for key, one in sorted(value.items(), key=str)}
    if isinstance(value, (list, tuple)):
        return [number(one) for one in value]
    if isinstance(value, torch.Tensor) and value.numel() != 1:
        return number(value.flatten().tolist())
    if isinstance(value, (float, torch.Tensor)):
        return round(float(value), 6) + 0.0  # no negative zero
    return value if value is None else str(value)


class Net(pl.LightningModule):
    """Args: see the table of configurations."""

    def __init__(
        self,
        schedule: Optional[Callable[[Any], Any]] = None,
        optimizer: Callable[..., Any] = torch.optim.SGD,
        optimizers: int = 1,
        manual: bool = False,
        uses_batch: bool = False,
        log: Optional[dict[str, Any]] = None,
        loaders: Optional[Callable[[], Any]] = None,
        curriculum: bool = False,
    ) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.backbone, self.head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)
        self.schedule, self.optimizer, self.count, self.uses_batch = schedule, optimizer, optimizers, uses_batch
        self.log_options, self.loaders, self.factor, self.curriculum = log, loaders, 1.0, curriculum
        self.automatic_optimization = not manual
        self.batches_seen = 0

    def rows(self, batch: Any, batch_idx: int) -> Any:
        if self.uses_batch:
            leaves = torch.utils._pytree.tree_leaves(batch)
            note("batch", *[leaf.flatten().tolist() for leaf in leaves if torch.is_tensor(leaf)])
            start = int(sum(leaf.sum() for leaf in leaves if torch.is_tensor(leaf)))
        else:
            start = self.current_epoch * 8 + batch_idx * 2
        return ROWS[start % 60 :][:2].to(self.dtype)

    def loss(self, batch: Any, batch_idx: int) -> Any:
        return (self.head(self.backbone(self.rows(batch, batch_idx))) - 1).pow(2).mean() * self.factor

    def on_train_epoch_start(self) -> None:
        if self.curriculum:
            self.factor = 1.0 + self.current_epoch

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.batches_seen += 1
        loss = self.loss(batch, batch_idx)
        note("loss", number(loss.detach()))
        if self.log_options is not None:
            self.log("loss", loss, **self.log_options)
        if self.automatic_optimization:
            return loss
        for optimizer in [self.optimizers()] if self.count == 1 else self.optimizers():
            optimizer.zero_grad()
            self.manual_backward(self.loss(batch, batch_idx))
            optimizer.step()
        schedulers = self.lr_schedulers()
        if schedulers is not None:
            schedulers.step()
        return None

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.head(self.backbone(torch.zeros_like(self.head.weight[0])))  # a call computes pruned weights
        self.log("val", self.head.weight.double().pow(2).sum())
        self.log("worse", float(self.global_step))

    def on_validation_epoch_end(self) -> None:
        self.log("val_end", float(self.global_step))

    def on_train_epoch_end(self) -> None:
        self.log("epoch_end", float(self.global_step))

    def configure_optimizers(self) -> Any:
        parts = [self.parameters()] if self.count == 1 else [self.backbone.parameters(), self.head.parameters()]
        made = [self.optimizer(part, lr=0.1) for part in parts]
        schedule = self.schedule
        if schedule is None:
            return made
        return made, [schedule(optimizer) for optimizer in made]

    def train_dataloader(self) -> Any:
        note("train_dataloader", self.current_epoch)
        return self.loaders() if self.loaders else DataLoader(range(2 * BATCHES), batch_size=2)

    def val_dataloader(self) -> Any:
        note("val_dataloader", self.current_epoch)
        return DataLoader(range(4), batch_size=2)

    def on_save_checkpoint(self, checkpoint: Any) -> None:
        checkpoint["batches_seen"] = self.batches_seen

    def on_load_checkpoint(self, checkpoint: Any) -> None:
        self.batches_seen = checkpoint["batches_seen"]


def progress(trainer: Any) -> tuple[int, int]:
    return trainer.current_epoch, trainer.global_step


def weights_of(module: Any) -> list[Any]:
    """The parameters by name; zero where a parameter is pruned, whatever its value would be without the mask."""
    buffers = dict(module.named_buffers())
    named = sorted((name.replace("_orig", ""), one.detach()) for name, one in module.named_parameters())
    return [one * buffers.get(f"{name}_mask", 1) for name, one in named]


class Recorder(cb.Callback):
    """A callback that records events. It is the first one."""

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        note("epoch starts", *progress(trainer))

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        note("batch starts", *progress(trainer), batch_idx)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        rates = [[number(group["lr"]) for group in one.param_groups] for one in trainer.optimizers]
        weights = number(sum(value.double().abs().sum() for value in weights_of(module)))
        note("batch ends", *progress(trainer), batch_idx, rates, weights)

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        if not trainer.sanity_checking:
            note("validation starts", *progress(trainer))

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if not trainer.sanity_checking:
            note("validation ends", *progress(trainer), number(trainer.callback_metrics.get("val")))

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        note("epoch ends", *progress(trainer))


class Rows(Logger):
    name, version = "rows", 0

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        pass

    def log_metrics(self, metrics: Any, step: Any = None) -> None:
        note("row", step, {name: number(value) for name, value in sorted(metrics.items())})


class Saver(cb.Checkpoint):
    """Saves a checkpoint at each stop, in the hook that ModelCheckpoint uses. ``places`` is None in a resumed run."""

    def __init__(self, places: Optional[dict[str, int]]) -> None:
        self.places = places

    def save(self, trainer: Any, *stops: str) -> None:
        for stop in stops:
            # Gradients of an accumulation that has not ended are in no checkpoint.
            if self.places is not None and stop not in self.places and not trainer.fit_loop._should_accumulate():
                self.places[stop] = len(TRACE)
                dict(trainer.callback_metrics)  # ModelCheckpoint reads them
                trainer.save_checkpoint(f"../{stop}.ckpt")
                shutil.copytree(".", f"../{stop}", dirs_exist_ok=True)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if trainer.current_epoch == 0 and batch_idx == 0:
            self.save(trainer, "first batch")
        if trainer.current_epoch == 1:
            last = trainer.fit_loop.epoch_loop.batch_progress.is_last_batch
            self.save(trainer, *(["within"] if batch_idx == 1 and not last else []), *(["last batch"] if last else []))

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        if trainer.current_epoch == 1:
            self.save(trainer, "epoch end")

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if trainer.current_epoch == 1 and not trainer.sanity_checking:
            self.save(trainer, "validation")


class Stateful:
    """A loader that continues in the middle of a pass, as torchdata's does. Without a length it is a stream.

    As many user classes, a ``lazy`` one looks at the restored state when the first batch is fetched.
    """

    def __init__(self, batches: int = BATCHES, offset: int = 0, lazy: bool = False) -> None:
        self.batches, self.offset, self.lazy = batches, offset, lazy
        self.passes, self.taken, self.resumed = 0, 0, False

    def __iter__(self) -> Any:
        if not self.lazy:
            self.start()
        return self.generate()

    def start(self) -> None:
        if not self.resumed:
            self.taken, self.passes = 0, self.passes + 1
        self.resumed = False

    def generate(self) -> Any:
        if self.lazy:
            self.start()
        while self.taken < self.batches:
            self.taken += 1
            yield torch.tensor([float(self.offset + 10 * self.passes + self.taken)])

    def state_dict(self) -> dict[str, int]:
        return {"taken": self.taken, "passes": self.passes}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.taken, self.passes, self.resumed = state["taken"], state["passes"], True


class StatefulSized(Stateful):
    def __len__(self) -> int:
        return self.batches


class Stream(IterableDataset):  # type: ignore[type-arg]
    def __init__(self, items: int = 2 * BATCHES) -> None:
        self.items = items

    def __iter__(self) -> Any:
        return iter(range(self.items))


def stream() -> Any:
    return DataLoader(Stream(), batch_size=2)


def sized(batches: int = BATCHES) -> Any:
    return DataLoader(range(2 * batches), batch_size=2)


def scheduler(kind: str, interval: str = "epoch", monitor: str = "", frequency: int = 1, **options: Any) -> Any:
    """The dictionary of a scheduler, as configure_optimizers returns it."""
    more = {"monitor": monitor} if monitor else {}
    strict = options.pop("strict", True)

    def make(optimizer: Any) -> Any:
        made = getattr(lrs, kind)(optimizer, **options)
        return {"scheduler": made, "interval": interval, "frequency": frequency, "strict": strict, **more}

    return make


def of(*callbacks: Callable[[], Any], loaders: Any = None, **options: Any) -> dict[str, Any]:
    """Return a configuration: makers of callbacks, and arguments of the module (see `Net`) or the Trainer."""
    names = ("schedule", "optimizer", "optimizers", "manual", "uses_batch", "log", "curriculum")
    module = {name: options.pop(name) for name in names if name in options}
    return {"callbacks": callbacks, "module": {**module, "loaders": loaders}, "trainer": options}


def checkpoint(**options: Any) -> Callable[[], Any]:
    return lambda: cb.ModelCheckpoint("c", **options)


def stopping(monitor: str = "val", **options: Any) -> Callable[[], Any]:
    return lambda: cb.EarlyStopping(monitor, **options)


class Counter(cb.Callback):
    """A callback with state."""

    batches = 0

    def on_train_batch_end(self, *_: Any) -> None:
        self.batches += 1

    def state_dict(self) -> dict[str, int]:
        return {"batches": self.batches}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.batches = state["batches"]


class Finetuning(cb.BackboneFinetuning):
    def __init__(self, epoch: int) -> None:
        super().__init__(unfreeze_backbone_at_epoch=epoch, backbone_initial_lr=0.01, lambda_func=lambda _: 1.5)


def of_unfrozen(parameters: Any, lr: float) -> Any:
    return torch.optim.SGD([one for one in parameters if one.requires_grad], lr=lr)


def pruning(permanent: bool = True, **options: Any) -> Callable[[], Any]:
    arguments = {"amount": 0.25, "make_pruning_permanent": permanent, "use_lottery_ticket_hypothesis": False, **options}
    return lambda: cb.ModelPruning("l1_unstructured", **arguments)


STEP, EXP = ({"step_size": 1, "gamma": 0.5}, {"gamma": 0.9})
PLATEAU = {"patience": 0, "factor": 0.5}
STATEFUL, STATEFUL_STREAM = ({"loaders": StatefulSized, "uses_batch": True}, {"loaders": Stateful, "uses_batch": True})
EMA = getattr(cb, "EMAWeightAveraging", None)

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "plain": of(),
    "adam": of(optimizer=torch.optim.Adam),
    "momentum": of(optimizer=lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9)),
    "no validation": of(limit_val_batches=0),
    "no validation, step scheduler": of(limit_val_batches=0, schedule=scheduler("StepLR", "step", **STEP)),
    "no validation, epoch scheduler": of(limit_val_batches=0, schedule=scheduler("StepLR", **STEP)),
    "no validation, stateful": of(limit_val_batches=0, **STATEFUL),
    "no validation, accumulation": of(limit_val_batches=0, accumulate_grad_batches=2),
    # schedulers
    "StepLR by epoch": of(schedule=scheduler("StepLR", **STEP)),
    "StepLR by step": of(schedule=scheduler("StepLR", "step", step_size=3, gamma=0.5)),
    "StepLR by two steps": of(schedule=scheduler("StepLR", "step", frequency=2, **STEP)),
    "ExponentialLR by epoch": of(schedule=scheduler("ExponentialLR", **EXP)),
    "ExponentialLR by two epochs": of(schedule=scheduler("ExponentialLR", frequency=2, **EXP)),
    "CosineAnnealingLR by step": of(schedule=scheduler("CosineAnnealingLR", "step", T_max=16)),
    "CosineAnnealingWarmRestarts by epoch": of(schedule=scheduler("CosineAnnealingWarmRestarts", T_0=2)),
    "OneCycleLR": of(schedule=scheduler("OneCycleLR", "step", max_lr=0.1, total_steps=16)),
    "LambdaLR by epoch": of(schedule=scheduler("LambdaLR", lr_lambda=lambda epoch: 1 / (1 + epoch))),
    "PolynomialLR by epoch, every two epochs validated": of(schedule=scheduler("PolynomialLR", total_iters=5),
     check_val_every_n_epoch=2),
    "StepLR by epoch, every two epochs validated": of(schedule=scheduler("StepLR", **STEP), check_val_every_n_epoch=2),
    "StepLR by epoch, within an epoch validated": of(schedule=scheduler("StepLR", **STEP), val_check_interval=2),
    "StepLR by epoch, stream": of(schedule=scheduler("StepLR", **STEP), loaders=stream),
    "StepLR by epoch, accumulation": of(schedule=scheduler("StepLR", **STEP), accumulate_grad_batches=2),
    "StepLR by step, accumulation": of(schedule=scheduler("StepLR", "step", **STEP), accumulate_grad_batches=2),
    "plateau by epoch": of(schedule=scheduler("ReduceLROnPlateau", monitor="worse", **PLATEAU)),
    "plateau by epoch, best": of(schedule=scheduler("ReduceLROnPlateau", monitor="val", threshold=0.5, **PLATEAU)),
    "plateau by two epochs": of(schedule=scheduler("ReduceLROnPlateau", monitor="worse", frequency=2, **PLATEAU)),
    "plateau by epoch, every two epochs validated": of(schedule=scheduler("ReduceLROnPlateau", monitor="worse",
     frequency=2, **PLATEAU), check_val_every_n_epoch=2),
    "plateau by epoch, within an epoch validated": of(schedule=scheduler("ReduceLROnPlateau", monitor="worse",
     **PLATEAU), val_check_interval=2),
    "plateau by step": of(schedule=scheduler("ReduceLROnPlateau", "step", "loss", mode="max", **PLATEAU),
     log={"on_step": True}, log_every_n_steps=1),
    "plateau by step on a validation metric": of(schedule=scheduler("ReduceLROnPlateau", "step", "worse", strict=False,
     **PLATEAU), val_check_interval=2),
    "plateau by two steps on a validation metric": of(schedule=scheduler("ReduceLROnPlateau", "step", "worse",
     frequency=2, **PLATEAU), val_check_interval=2),
    "plateau, not strict": of(schedule=scheduler("ReduceLROnPlateau", monitor="worse", strict=False, **PLATEAU)),
    "plateau, stream": of(schedule=scheduler("ReduceLROnPlateau", monitor="worse", **PLATEAU), loaders=stream),
    "plateau on a metric of training": of(schedule=scheduler("ReduceLROnPlateau", monitor="epoch_end", **PLATEAU)),
    # early stopping
    "EarlyStopping": of(stopping(patience=2)),
    "EarlyStopping on a worse metric": of(stopping("worse", patience=2)),
    "EarlyStopping after validation": of(stopping("worse", patience=2, check_on_train_epoch_end=False)),
    "EarlyStopping at the epoch's end": of(stopping("worse", patience=2, check_on_train_epoch_end=True)),
    "EarlyStopping within an epoch": of(stopping("worse", patience=4), val_check_interval=2),
    "EarlyStopping, every two epochs validated": of(stopping("worse", patience=3), check_val_every_n_epoch=2),
    "EarlyStopping on a metric of training": of(stopping("epoch_end", patience=2)),
    "EarlyStopping, not strict": of(stopping("worse", strict=False, patience=2)),
    "EarlyStopping, min_epochs": of(stopping("worse", patience=0), min_epochs=3),
    "EarlyStopping, stream": of(stopping("worse", patience=2), loaders=stream),
    "EarlyStopping and plateau": of(stopping("worse", patience=3),
     schedule=scheduler("ReduceLROnPlateau", monitor="worse", **PLATEAU)),
    # checkpoints
    "ModelCheckpoint": of(checkpoint()),
    "ModelCheckpoint, best": of(checkpoint(monitor="worse", save_top_k=2, filename="{epoch}-{step}")),
    "ModelCheckpoint, last": of(checkpoint(save_last=True, monitor="val", filename="{epoch}")),
    "ModelCheckpoint, every two steps": of(checkpoint(every_n_train_steps=2, save_top_k=-1, filename="{step}")),
    "ModelCheckpoint, every four steps": of(checkpoint(every_n_train_steps=4, save_top_k=-1, filename="{step}")),
    "ModelCheckpoint, every two epochs": of(checkpoint(every_n_epochs=2, save_top_k=-1, filename="{epoch}")),
    "ModelCheckpoint, after validation": of(checkpoint(save_on_train_epoch_end=False, save_top_k=-1,
     filename="{epoch}-{step}"), val_check_interval=2),
    "ModelCheckpoint, at the epoch's end": of(checkpoint(save_on_train_epoch_end=True, monitor="worse", save_top_k=2,
     filename="{epoch}")),
    # callbacks
    "callback with state": of(Counter),
    "curriculum": of(curriculum=True),
    "SWA": of(lambda: cb.StochasticWeightAveraging(0.05, swa_epoch_start=2, annealing_epochs=2)),
    "SWA from the start": of(lambda: cb.StochasticWeightAveraging(0.05, swa_epoch_start=1, annealing_epochs=1)),
    "SWA with a scheduler": of(lambda: cb.StochasticWeightAveraging(0.05, swa_epoch_start=1, annealing_epochs=2),
     schedule=scheduler("StepLR", **STEP)),
    "GradientAccumulationScheduler": of(lambda: cb.GradientAccumulationScheduler({0: 2})),
    "GradientAccumulationScheduler, later": of(lambda: cb.GradientAccumulationScheduler({1: 2, 2: 4})),
    "GradientAccumulationScheduler, one": of(lambda: cb.GradientAccumulationScheduler({0: 4, 2: 1})),
    "BackboneFinetuning from the start": of(lambda: Finetuning(0)),
    "BackboneFinetuning from the first epoch": of(lambda: Finetuning(1)),
    "BackboneFinetuning from the second epoch": of(lambda: Finetuning(2)),
    "BackboneFinetuning, every two epochs validated": of(lambda: Finetuning(1), check_val_every_n_epoch=2),
    "BackboneFinetuning, only the head in the optimizer": of(lambda: Finetuning(0), optimizer=of_unfrozen),
    "ModelPruning": of(pruning()),
    "ModelPruning by layer, Adam": of(pruning(use_global_unstructured=False), optimizer=torch.optim.Adam),
    "ModelPruning, not permanent": of(pruning(permanent=False)),
    "LearningRateMonitor": of(cb.LearningRateMonitor, schedule=scheduler("StepLR", "step", **STEP),
     log_every_n_steps=1),
    # optimization
    "accumulation": of(accumulate_grad_batches=2),
    "accumulation with a rest": of(accumulate_grad_batches=3),
    "accumulation, Adam": of(accumulate_grad_batches=2, optimizer=torch.optim.Adam),
    "clipping": of(gradient_clip_val=0.1),
    "manual optimization": of(manual=True),
    "manual optimization, two optimizers": of(manual=True, optimizers=2),
    "manual optimization, scheduler": of(manual=True, schedule=scheduler("StepLR", **STEP)),
    "manual optimization, logged": of(manual=True, log={"on_step": True}, log_every_n_steps=1),
    "64-true": of(precision="64-true"),
    "bf16-mixed": of(precision="bf16-mixed"),
    # validation
    "validated every two batches": of(val_check_interval=2),
    "validated every half epoch": of(val_check_interval=0.5),
    "validated every batch": of(val_check_interval=1),
    "validated every three batches": of(val_check_interval=3),
    "validated every three batches across epochs": of(val_check_interval=3, check_val_every_n_epoch=None),
    "validated every six batches across epochs": of(val_check_interval=6, check_val_every_n_epoch=None),
    "validated every two epochs": of(check_val_every_n_epoch=2),
    "validated every three epochs": of(check_val_every_n_epoch=3),
    # limits
    "limit_train_batches": of(limit_train_batches=3),
    "limit_train_batches, fraction": of(limit_train_batches=0.5),
    "limit_train_batches, stream": of(limit_train_batches=3, loaders=stream),
    "overfit_batches": of(overfit_batches=2),
    "max_steps": of(max_steps=14, max_epochs=-1),
    "max_steps at an epoch's end": of(max_steps=12, max_epochs=-1),
    "max_steps, finished at an epoch's end": of(max_steps=8, max_epochs=-1),
    "max_steps, finished within an epoch": of(max_steps=6, max_epochs=-1),
    "max_steps and max_epochs": of(max_steps=100),
    "max_steps, validated every two batches": of(max_steps=14, max_epochs=-1, val_check_interval=2),
    "max_steps, across epochs": of(max_steps=14, max_epochs=-1, val_check_interval=3, check_val_every_n_epoch=None),
    "max_steps, step scheduler": of(max_steps=14, max_epochs=-1, schedule=scheduler("StepLR", "step", **STEP)),
    "max_steps, epoch scheduler": of(max_steps=14, max_epochs=-1, schedule=scheduler("StepLR", **STEP)),
    "max_steps, stateful": of(max_steps=14, max_epochs=-1, **STATEFUL),
    "stateful, lazy": of(loaders=lambda: StatefulSized(lazy=True), uses_batch=True),
    "stateful stream, lazy": of(loaders=lambda: Stateful(lazy=True), uses_batch=True),
    "max_steps, stateful stream": of(max_steps=14, max_epochs=-1, **STATEFUL_STREAM),
    "min_steps": of(min_steps=5),
    "max_steps, accumulation": of(max_steps=7, max_epochs=-1, accumulate_grad_batches=2),
    # data
    "stateful": of(**STATEFUL),
    "stateful stream": of(**STATEFUL_STREAM),
    "stateful, validated every two batches": of(val_check_interval=2, **STATEFUL),
    "stateful, accumulation": of(accumulate_grad_batches=2, **STATEFUL),
    "stateful stream, validated every two batches": of(val_check_interval=2, **STATEFUL_STREAM),
    "stateful, limit_train_batches": of(limit_train_batches=3, loaders=lambda: StatefulSized(6), uses_batch=True),
    "stateful, lazy, limit_train_batches": of(limit_train_batches=3, loaders=lambda: StatefulSized(6, lazy=True),
     uses_batch=True),
    "stateful stream, limit_train_batches": of(limit_train_batches=3, loaders=lambda: Stateful(6), uses_batch=True),
    "stream": of(loaders=stream),
    "stream, validated every two batches": of(val_check_interval=2, loaders=stream),
    "stream, accumulation": of(accumulate_grad_batches=3, loaders=stream),
    "one batch": of(loaders=lambda: sized(1)),
    "CombinedLoader, min_size": of(loaders=lambda: CombinedLoader({"a": sized(4), "b": sized(6)}, "min_size"),
     log={"on_step": True}),
    "CombinedLoader, max_size": of(loaders=lambda: CombinedLoader([sized(3), sized(4)], "max_size")),
    "CombinedLoader, max_size_cycle": of(loaders=lambda: [sized(2), sized(4)]),
    "CombinedLoader, stateful": of(loaders=lambda: CombinedLoader([StatefulSized(), StatefulSized(offset=100)],
     "min_size"), uses_batch=True),
    "CombinedLoader, stateful streams": of(loaders=lambda: CombinedLoader([Stateful(), Stateful(offset=100)],
     "min_size"), uses_batch=True),
    "reload every epoch": of(reload_dataloaders_every_n_epochs=1),
    "reload every two epochs": of(reload_dataloaders_every_n_epochs=2),
    "reload every three epochs": of(reload_dataloaders_every_n_epochs=3),
    "reload every two epochs, validated across epochs": of(reload_dataloaders_every_n_epochs=2, val_check_interval=3,
     check_val_every_n_epoch=None),
    "reload every epoch, validated across epochs, sanity check": of(reload_dataloaders_every_n_epochs=1,
     val_check_interval=6, check_val_every_n_epoch=None, num_sanity_val_steps=1),
    "reload every two epochs, stream, validated across epochs": of(reload_dataloaders_every_n_epochs=2,
     val_check_interval=3, check_val_every_n_epoch=None, loaders=stream),
    "reload every epoch, stateful": of(reload_dataloaders_every_n_epochs=1, **STATEFUL),
    "reload every epoch, stateful, lazy, limit_train_batches": of(limit_train_batches=3,
     reload_dataloaders_every_n_epochs=1, loaders=lambda: StatefulSized(6, lazy=True), uses_batch=True),
    # logged values
    "logged by step": of(log={"on_step": True, "on_epoch": False}, log_every_n_steps=1),
    "logged by two steps": of(log={"on_step": True, "on_epoch": False}, log_every_n_steps=2),
    "logged by step, accumulation": of(log={"on_step": True, "on_epoch": False}, log_every_n_steps=1,
     accumulate_grad_batches=2),
    "logged by step, validated every two batches": of(log={"on_step": True, "on_epoch": False}, log_every_n_steps=1,
     val_check_interval=2),
    "logged by epoch": of(log={"on_step": False, "on_epoch": True}),
}  # fmt: skip
if EMA:
    CONFIGURATIONS["EMAWeightAveraging"] = of(lambda: EMA(decay=0.9))
    CONFIGURATIONS["EMAWeightAveraging, later"] = of(lambda: EMA(decay=0.9, update_starting_at_step=6))

WITHIN = ("first batch", "within")
INEXACT: dict[str, tuple[str, ...]] = {
    "logged by epoch": (*WITHIN, "last batch", "validation"),
    **{name: WITHIN for name in CONFIGURATIONS if name.endswith("stream") and not name.startswith(("stateful", "max"))},
    "stream, validated every two batches": (*WITHIN, "validation"),
    "stream, accumulation": WITHIN,
    **{name: ("finished",) for name in CONFIGURATIONS if name.startswith(("SWA", "EMA"))},
    "max_steps, finished at an epoch's end": ("last batch", "validation"),
    "max_steps, finished within an epoch": ("within", "validation"),
    "reload every two epochs, stream, validated across epochs": (*WITHIN, "validation"),
    **dict.fromkeys(("ModelPruning", "ModelPruning by layer, Adam"), ("finished",)),
}
"""Stops at which a configuration cannot be exact, by nature: see "Exact resume" in the manual."""


def fit(configuration: dict[str, Any], places: Optional[dict[str, int]], path: Optional[str], **limits: Any) -> None:
    """Run one fit in the current directory; fill `TRACE`."""
    TRACE.clear()
    module = Net(**configuration["module"])
    callbacks = [Recorder(), *(make() for make in configuration["callbacks"]), Saver(places)]
    options = {
        "max_epochs": EPOCHS,
        "log_every_n_steps": 50,
        "num_sanity_val_steps": 0,
        **configuration["trainer"],
        **limits,
    }
    trainer = pl.Trainer(
        accelerator="cpu", devices=1, logger=Rows(), callbacks=callbacks, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=os.getcwd(), **options,
    )  # fmt: skip
    try:
        trainer.fit(module, ckpt_path=path)
    except Exception as error:
        note("error", f"{type(error).__name__}: {str(error).splitlines()[0][:100]}")
        return
    if places is not None and limits:
        trainer.save_checkpoint("../finished.ckpt")
    rates = [[number(group["lr"]) for group in one.param_groups] for one in trainer.optimizers]
    weights = [number(value) for value in torch.cat([one.flatten() for one in weights_of(module)]).tolist()]
    note("end", *progress(trainer), rates, weights, module.batches_seen)
    for callback in callbacks:
        state = json.dumps(number(callback.state_dict())).replace(os.getcwd(), ".")
        note("state", type(callback).__name__, json.loads(state))
    note("files", sorted(os.listdir("c")) if os.path.isdir("c") else [])


STARTS = ("epoch starts", "batch starts", "validation starts", "epoch ends", "end", "error")


def rest(trace: list[list[Any]], place: int) -> list[list[Any]]:
    """Return the events of an uninterrupted run after a checkpoint, without the rest of the saved batch."""
    while place < len(trace) and trace[place][0] not in STARTS:
        place += 1
    return [event for event in trace[place:] if not event[0].endswith("_dataloader")] + reloads(trace[place:])


def reloads(trace: list[list[Any]]) -> list[list[Any]]:
    """Return the epochs of new loaders as the last event: a resumed run creates its first ones before it starts."""
    training, validation = (
        [event[1] for event in trace if event[0] == kind] for kind in ("train_dataloader", "val_dataloader")
    )
    later = [epoch for epoch in validation if trace[0][0] in STARTS[:-2] and epoch > trace[0][1]]
    return [["loaders", *training, "validation", *later]]


def enter(directory: str) -> None:
    os.makedirs(directory, exist_ok=True)
    os.chdir(directory)


class Stopped:
    """A configuration's uninterrupted run, and the checkpoints of its stops, in a temporary directory."""

    def __init__(self, configuration: dict[str, Any], stops: tuple[str, ...] = STOPS) -> None:
        self.configuration = configuration
        self.directory = tempfile.TemporaryDirectory()
        self.root = self.directory.name
        self.work = os.path.join(self.root, "work")  # shared: ModelCheckpoint stores its absolute path
        self.places: dict[str, int] = {}
        enter(self.work)
        fit(configuration, self.places, None)
        self.whole = [*TRACE]
        if "finished" in stops and "max_steps" not in configuration["trainer"]:
            shutil.rmtree(self.work)
            enter(self.work)
            fit(configuration, dict.fromkeys(STOPS, 0), None, max_epochs=2)
            if TRACE[-1][0] != "error" and os.path.exists("../finished.ckpt"):
                starts = [at for at, event in enumerate(self.whole) if event[:2] == ["epoch starts", 2]]
                self.places["finished"] = starts[0] if starts else len(self.whole)
                shutil.copytree(".", "../finished")

    def __enter__(self) -> Stopped:
        return self

    def __exit__(self, *_: object) -> None:
        os.chdir("/")
        self.directory.cleanup()

    def expected(self, stop: str) -> list[list[Any]]:
        return self._compared(self.whole, self.places[stop])

    def resumed(self, stop: str) -> list[list[Any]]:
        os.chdir(self.root)
        shutil.rmtree(self.work)
        shutil.copytree(stop, self.work)
        os.chdir(self.work)
        fit(self.configuration, None, f"../{stop}.ckpt")
        found, expected = self._compared(TRACE, 0), self.expected(stop)
        # Below 2.5.0, the hook is called again for an epoch that continues, and programs rely on it.
        called_again = found[0][:2] == ["epoch starts", expected[0][1]] and expected[0][0] != "epoch starts"
        return found[1:] if called_again else found

    def _compared(self, trace: list[list[Any]], place: int) -> list[list[Any]]:
        found = rest(trace, place)
        return found if self.configuration["trainer"].get("reload_dataloaders_every_n_epochs") else found[:-1]

    def differences(self) -> dict[str, list[Any]]:
        """Return, for each stop, the first different event of the uninterrupted and of the resumed run.

        The third value is True if this package has warned of the resumed run.
        """
        found: dict[str, list[Any]] = {}
        for stop in self.places:
            getattr(sys.modules.get("lightning_patches.notices"), "_said", set()).clear()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                expected, resumed = self.expected(stop), self.resumed(stop)
            if expected != resumed:
                pairs = zip([*expected, ["nothing"]], [*resumed, ["nothing"]])
                first = next([one, other] for one, other in pairs if one != other)
                found[stop] = [*first, any("does not resume this run exactly" in str(one.message) for one in caught)]
        return found


def after_stop(case: str) -> dict[str, Any]:
    """Return the events of a resumed run, each as JSON, as the observations of a scenario.

    Args:
        case: configuration and stop, ``"plain: last batch"``; with ``", whole"``, those of the uninterrupted run.
    """
    name, _, stop = case.replace(", whole", "").partition(": ")
    with Stopped(CONFIGURATIONS[name], (stop,)) as stopped:
        events = stopped.expected(stop) if case.endswith(", whole") else stopped.resumed(stop)
    return {"events": [json.dumps(event) for event in events]}


def main() -> None:
    """Write the unexpected differences of configurations to a file. Arguments: the file, and names; all by default."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in ("lightning.pytorch", "pytorch_lightning", "lightning.fabric", "lightning_fabric", "lightning_patches"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    path, *names = sys.argv[1:]
    found: dict[str, Any] = {}
    for name in names or CONFIGURATIONS:
        with Stopped(CONFIGURATIONS[name]) as stopped:
            found[name] = stopped.differences()
        for stop in INEXACT.get(name, ()):
            found[name].pop(stop, None)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
