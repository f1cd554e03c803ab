"""A random training, with random values for `OPTIONS`."""

from __future__ import annotations

import functools
import glob
import os
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, Callable, Optional

import torch
from torch import nn, optim
from torch.optim import lr_scheduler as rates
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    WeightedRandomSampler,
)

from tests.differential.observing import (
    IS_1X,
    CombinedLoader,
    Log,
    MultiprocessingDDP,
    Options,
    Tuner,
    Watch,
    module,
    observe,
    pl,
    precision,
    shown,
    weights,
)

cb = pl.callbacks
o: Options
make: Any
"""Creates objects of user classes."""
fails = True


class Numbers(Dataset[Any]):
    def __init__(self, length: int, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.x, self.y = (torch.randn(length, width, generator=generator) for width in (8, 1))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Any:
        if index == 9:
            fail("data")
        x, y = self.x[index], self.y[index]
        return {"x": x, "y": y} if o.batch_type == "dict" else (x, y)


class Stream(IterableDataset[Any]):
    def __init__(self, data: Any) -> None:
        self.data = data

    def __iter__(self) -> Any:
        return iter([self.data[index] for index in range(len(self.data))])


class Backwards(torch.utils.data.Sampler[int]):
    def __init__(self, data: Any) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Any:
        return iter(range(len(self.data) - 1, -1, -1))

    def set_epoch(self, epoch: int) -> None:
        observe("set_epoch", epoch)


def loader(data: Any, size: int = 4, **more: Any) -> Any:
    return make(DataLoader, data, **({"batch_size": size} if "batch_sampler" not in more else {}), **more)


def train_loader(size: int = 4) -> Any:
    data = Numbers(o.batches * 4 - o.short)
    if o.data == "iterable":
        return loader(Stream(data), size)
    if o.data in ("map", "workers"):
        samplers: dict[Any, Callable[[], dict[str, Any]]] = {
            "own": lambda: {"sampler": make(Backwards, data)},
            "weighted": lambda: {"sampler": WeightedRandomSampler([1.0] * len(data), len(data))},
            "own batches": lambda: {"batch_sampler": BatchSampler(SequentialSampler(data), size, o.drop_last)},
            None: lambda: {"shuffle": o.shuffle, "drop_last": o.drop_last},
        }
        return loader(data, size, num_workers=int(o.data == "workers"), **samplers[o.sampler]())
    plain, other = loader(data, size), loader(Numbers(6, seed=5), 2)
    kinds = {"any iterable": list(plain), "dict": {"batch": plain}, "two": [plain, other]}
    if o.data in kinds:
        return kinds[o.data]
    return CombinedLoader({"batch": plain, "other": other}, mode=o.data)


def val_loaders(size: int = 4) -> Any:
    first = {"map": Numbers(12, 1), "iterable": Stream(Numbers(12, 1)), "empty": Numbers(0), "short": Numbers(3, 1)}
    return [loader(first[o.val_data], size), loader(Numbers(6, 2), size)][: o.val_loaders]


class Data(pl.LightningDataModule):
    batch_size = 4

    def state_dict(self) -> Any:
        return {"kept": 3}

    def load_state_dict(self, state: Any) -> None:
        observe("datamodule state", state)

    def train_dataloader(self) -> Any:
        return train_loader(self.batch_size)

    def val_dataloader(self) -> Any:
        return val_loaders()


def data_for(train: bool = True) -> dict[str, Any]:
    """Return the data as arguments of ``fit`` and ``validate``."""
    if o.by == "arguments":
        val = val_loaders() or None
        return {"train_dataloaders": train_loader(), "val_dataloaders": val} if train else {"dataloaders": val}
    return {"datamodule": make(Data)} if o.by == "datamodule" else {}


def fail(where: str, trainer: Any = None) -> None:
    """Raise an error if the options say that the program fails here."""
    if o.raises and fails and where == o.raises_in and (trainer is None or trainer.global_step >= o.raises_at):
        raise o.raises(f"on purpose, {where}")


def sized() -> dict[str, int]:
    """Return arguments of ``self.log`` for a batch whose size Lightning can't determine."""
    return {"batch_size": 4} if o.overrides == "dataloader_iter" else {}


class Settings:
    def __init__(self) -> None:
        self.width = 8


class Plain(pl.LightningModule):
    """The module; `classes` adds further overrides."""

    def __init__(self, settings: Any = None, rate: float = 0.1, head: Optional[nn.Module] = None) -> None:
        super().__init__()
        if o.keeps and o.keeps != "state":
            self.save_hyperparameters()
        torch.manual_seed(0)
        self.lr, self.batch_size, self.own_head = rate, 4, head
        self.automatic_optimization = not o.manual
        self.net: Any = None
        self.spare = nn.Linear(3, 3) if o.unused else None
        self.critic = nn.Linear(1, 1) if o.manual == "gan" else None
        self.scale = nn.Linear(8, 8).requires_grad_(False).eval() if o.frozen else nn.Identity()
        if o.overrides != "configure_model":
            self.build()

    def build(self) -> None:
        if self.net is None:
            parts = [nn.Linear(8, 8), nn.BatchNorm1d(8) if o.batch_norm else nn.Identity(), nn.ReLU()]
            self.net = nn.Sequential(*parts, nn.Dropout(o.dropout), self.own_head or nn.Linear(8, 1))
            self.net = torch.compile(self.net, backend="eager") if o.compiled == "net" else self.net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(self.scale(x))

    def loss(self, batch: Any, training: bool = False) -> torch.Tensor:
        if training and o.data in ("dict", "max_size_cycle", "min_size", "two"):
            batch = batch["batch"] if isinstance(batch, dict) else batch[0]
        x, y = (batch["x"], batch["y"]) if isinstance(batch, dict) else batch
        return nn.functional.mse_loss(self(x), y)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        fail("training_step", self.trainer)
        loss = by_hand(self, batch, batch_idx) if o.manual else self.loss(batch, training=True)
        if o.log_train != "no":
            self.log("train_loss", loss, **LOG[o.log_train], **sized())
        if o.log_also == "dict":
            self.log_dict({"a": loss.detach(), "b": batch_idx + 0.5}, on_step=False, on_epoch=True, **sized())
        elif o.log_also:
            also = ALSO[o.log_also](self, loss.detach().clone(), batch_idx)
            self.log("group/also", **{"on_step": True, "on_epoch": True, **sized(), **also})
        observe("training_step", loss)
        if o.returns == "dict" and not o.manual:
            return {"loss": loss, "kept": batch_idx}
        return None if o.returns == "sometimes none" and batch_idx % 3 == 1 else loss.detach() if o.manual else loss

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        fail("validation_step", self.trainer)
        loss = self.loss(batch)
        if o.log_val == "without index":
            self.log("val_loss" if dataloader_idx == 0 else "other", loss, add_dataloader_idx=False, **sized())
        elif o.log_val != "no":
            self.log("val_loss", loss, **LOG[o.log_val], **sized())
        observe("validation_step", loss)

    def test_step(self, batch: Any, batch_idx: int) -> None:
        self.log("test_loss", self.loss(batch), **sized())

    def predict_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        return self.loss(batch)

    def configure_optimizers(self) -> Any:
        fail("configure_optimizers")
        parameters: Any = self.parameters() if o.unused else self.net.parameters()
        if o.groups == 2:
            first, last = self.net[0].parameters(), self.net[-1].parameters()
            parameters = [{"params": first, "lr": self.lr / 10}, {"params": last}]
        if o.optimizer == "none":
            return None
        cls, more = OPTIMIZERS[o.optimizer]
        optimizer = make(cls, parameters, lr=self.lr, **more)
        if o.manual == "gan":
            return optimizer, optim.SGD(self.critic.parameters(), lr=0.01)
        scheduler = "step epoch" if o.manual == "with schedulers" else o.scheduler
        if not scheduler:
            forms = {"list": [optimizer], "dict": {"optimizer": optimizer}, "lists": ([optimizer], [])}
            return forms.get(o.configured, optimizer)
        entries = SCHEDULERS[scheduler](optimizer)
        if o.configured == "dict" and len(entries) == 1:
            return {"optimizer": optimizer, "lr_scheduler": entries[0]}
        return [optimizer], entries


def by_hand(self: Any, batch: Any, batch_idx: int) -> Any:
    """A step of manual optimization."""
    found = self.optimizers()
    loss = self.loss(batch, training=True)
    for turn, optimizer in enumerate(found if o.manual == "gan" else [found]):
        if o.manual == "gan":
            self.toggle_optimizer(optimizer)
        if turn:
            loss = self.critic(loss.detach().reshape(1, 1)).pow(2).mean()
        closure = functools.partial(backward, self, batch, loss, optimizer)
        if o.manual == "closure":
            optimizer.step(closure=closure)
            continue
        closure()
        if o.manual != "accumulating" or batch_idx % 2:
            optimizer.step()
            if o.manual == "accumulating":
                optimizer.zero_grad()
        if o.manual == "gan":
            self.untoggle_optimizer(optimizer)
    if o.manual == "with schedulers" and self.trainer.is_last_batch:
        self.lr_schedulers().step()
    return loss


def backward(self: Any, batch: Any, loss: Any, optimizer: Any) -> Any:
    if o.manual != "accumulating":
        optimizer.zero_grad()
    self.manual_backward(loss)
    if o.manual == "two backwards":
        self.manual_backward(self.loss(batch, training=True))
    if o.manual == "plain":
        self.clip_gradients(optimizer, gradient_clip_val=0.5)
    return loss


def _optimizer_step(self: Any, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None) -> None:
    observe("optimizer_step", [epoch, batch_idx])
    if o.overrides == "closure again" and batch_idx % 2:
        optimizer_closure()
    else:
        optimizer.step(closure=optimizer_closure)


def _from_iterator(self: Any, dataloader_iter: Any) -> Any:
    got = next(dataloader_iter)
    return Plain.training_step(self, *(got[:2] if isinstance(got, tuple) and len(got) == 3 else (got, 0)))


CALLED = lambda *_: observe("called")  # noqa: E731
OVERRIDES: dict[str, dict[str, Any]] = {
    "optimizer_step": {"optimizer_step": _optimizer_step},
    "closure again": {"optimizer_step": _optimizer_step},
    "zero_grad": {"optimizer_zero_grad": lambda self, epoch, batch_idx, optimizer: optimizer.zero_grad(False)},
    "configure_callbacks": {"configure_callbacks": lambda self: [cb.LambdaCallback(on_fit_end=CALLED)]},
    "configure_model": {"configure_model": lambda self: self.build()},
    "dataloader_iter": {"training_step": _from_iterator},
    "optional batch_idx": {"training_step": lambda self, batch: Plain.training_step(self, batch, 1)},
}


def methods(base: Any, of: str, acts: dict[str, Any]) -> dict[str, Any]:
    """Return methods that override those of ``base``. ``of`` is the prefix of their keys in ``acts``."""

    def method(name: str, wanted: Any) -> Any:
        def hook(self: Any, *arguments: Any, **named: Any) -> Any:
            result = getattr(base, name)(self, *arguments, **named)
            for act in wanted:
                act(*(arguments[:2] if of else (self.trainer, self)))
            return result

        return hook

    found = {hook: wanted for hook, wanted in acts.items() if hook.startswith("callback ") == bool(of)}
    names = {hook.removeprefix(of): method(hook.removeprefix(of), wanted) for hook, wanted in found.items()}
    return {"__module__": __name__, **names}


def classes() -> tuple[Any, Any]:
    """Return the classes of the module and the callback, with the program's code in their hooks."""
    acts: dict[str, list[Callable[[Any, Any], None]]] = {}

    def add(hook: str, act: Callable[[Any, Any], None]) -> None:
        acts.setdefault(hook, []).append(act)

    if o.log_in:
        add(o.log_in, lambda trainer, root: root.log("in_hook", float(trainer.global_step)))
    if o.raises and "on_" in o.raises_in:
        add(o.raises_in, lambda trainer, root: fail(o.raises_in, trainer))
    if o.stops == "should_stop":
        add("on_train_batch_end", lambda trainer, _: setattr(trainer, "should_stop", trainer.global_step >= 4))
    if o.callback == "stops validation":
        add("callback on_train_epoch_start", lambda trainer, _: setattr(trainer, "limit_val_batches", 1))
    of_module = methods(Plain, "", acts) | OVERRIDES.get(o.overrides, {})
    if o.keeps == "state":
        of_module["on_save_checkpoint"] = lambda self, checkpoint: checkpoint.update(mine=self.trainer.global_step)
        of_module["on_load_checkpoint"] = lambda self, checkpoint: observe("mine", checkpoint.get("mine"))
    if o.by == "module":
        of_module["train_dataloader"] = lambda self: train_loader(self.batch_size)
        of_module["val_dataloader"] = lambda self: val_loaders()
    of_callback = methods(pl.Callback, "callback ", acts)
    if o.callback == "stateful":
        of_callback["state_dict"] = lambda self: {"count": 3}
        of_callback["load_state_dict"] = lambda self, state: observe("count", state)
    return type("Model", (Plain,), of_module), type("OwnCallback", (pl.Callback,), of_callback)


class Unfreeze(cb.BaseFinetuning):
    def freeze_before_training(self, pl_module: Any) -> None:
        self.freeze(pl_module.net[0])

    def finetune_function(self, pl_module: Any, epoch: int, optimizer: Any, *_: Any) -> None:
        if epoch == 1:
            self.unfreeze_and_add_param_group(pl_module.net[0], optimizer)


def checkpoints(directory: str) -> list[Any]:
    if o.checkpoint in ("off", "default"):
        return []
    given = {name: getattr(o, name) for name in CHECKPOINT} | o.checkpoint_when
    if o.monitor is None and o.save_top_k == 2:
        given["monitor"] = "step"
    found = [make(cb.ModelCheckpoint, directory, **given)]
    found.append(make(cb.ModelCheckpoint, f"{directory}/other", every_n_train_steps=2, save_top_k=-1))
    return found[: 1 + (o.checkpoint == "two")]


def callbacks(directory: str, own_callback: Any) -> list[Any]:
    names = (o.callback, o.stops, o.swa, o.accumulates, o.progress_bar)
    named = [CALLBACKS[name] for name in names if name in CALLBACKS]
    if o.lr_finder == "callback":
        named.append((cb.LearningRateFinder, {"num_training_steps": 20}))
    if o.batch_size_finder == "callback":
        named.append((cb.BatchSizeFinder, {"max_trials": 2, "steps_per_trial": 1}))
    found = [*checkpoints(directory), make(own_callback), *(make(cls, **given) for cls, given in named)]
    found += [make(Unfreeze)] if o.finetuning else []
    return [Watch(), *found] if o.callback == "first" else [*found, Watch()]


def trainer_of(own_callback: Any, directory: str = "run", **more: Any) -> Any:
    given: dict[str, Any] = {name: getattr(o, name) for name in TRAINER}
    given |= {"accelerator": "cpu", "devices": 1, "default_root_dir": directory}
    given["logger"] = {"own": lambda: make(Log), "csv": lambda: make(pl.loggers.CSVLogger, directory)}.get(
        o.logger, bool
    )()
    given |= {"enable_progress_bar": bool(o.progress_bar), "enable_model_summary": o.callback == "summary"}
    given |= {"callbacks": callbacks(directory, own_callback), "enable_checkpointing": o.checkpoint != "off"}
    if o.accumulates or o.manual:
        given["accumulate_grad_batches"] = None if IS_1X else 1
    if isinstance(o.val_check_interval, str):
        given |= {"val_check_interval": 4 if o.val_check_interval == "across" else 5, "check_val_every_n_epoch": None}
    if o.clip and not o.manual:
        given |= {"gradient_clip_algorithm": o.clip[0], "gradient_clip_val": o.clip[1]}
    if o.stops == "max_time":
        given["max_time"] = {"hours": 1}
    if o.strategy:
        flags: dict[str, Any] = {name: True for name in ("static_graph", "gradient_as_bucket_view") if getattr(o, name)}
        flags |= {"find_unused_parameters": True} if o.unused == "found" else {}
        cls = MultiprocessingDDP
        if IS_1X and o.strategy == "popen":
            cls = module("pytorch.strategies").DDPStrategy
        else:
            flags["start_method"] = o.strategy
        given["strategy"] = make(cls, timeout=timedelta(seconds=45), **flags)
        given |= {"devices": 2, "replace_sampler_ddp" if IS_1X else "use_distributed_sampler": not o.own_sampler}
    if o.plugin:
        given["plugins"] = [make(getattr(module("pytorch.plugins.io"), o.plugin))]
    given["precision"] = precision(o.precision)
    if o.barebones and not IS_1X:
        kept = ("accelerator", "devices", "max_epochs", "max_steps", "default_root_dir", "precision")
        given = {name: given[name] for name in kept} | {"barebones": True}
    return make(pl.Trainer, **{**given, **more})


# fmt: off
HOOKS = (
    *("on_train_epoch_end", "on_train_start", "on_train_batch_start", "on_before_optimizer_step", "on_train_batch_end"),
    *("on_validation_epoch_end", "on_validation_batch_end", "on_train_epoch_start", "callback on_train_epoch_end"),
    *("on_validation_start", "callback on_train_batch_end", "callback on_validation_epoch_end"),
)
ALSO: dict[str, Callable[[Any, Any, int], dict[str, Any]]] = {
    "int": lambda m, loss, n: {"value": n, "on_epoch": False}, "float": lambda m, loss, n: {"value": 0.1 + n},
    "large int": lambda m, loss, n: {"value": 2**24 + 1 + n, "reduce_fx": "max"},
    "bool": lambda m, loss, n: {"value": n % 2 == 0, "on_epoch": False},
    "double": lambda m, loss, n: {"value": torch.tensor(0.1, dtype=torch.float64) * (n + 1)},
    "half": lambda m, loss, n: {"value": loss.half()}, "sum": lambda m, loss, n: {"value": loss, "reduce_fx": "sum"},
    "max": lambda m, loss, n: {"value": loss, "on_step": False, "reduce_fx": "max"},
    "min": lambda m, loss, n: {"value": loss, "reduce_fx": torch.min},
    "batch_size": lambda m, loss, n: {"value": loss, "batch_size": n + 1},
    "prog_bar": lambda m, loss, n: {"value": loss, "prog_bar": True},
    "without logger": lambda m, loss, n: {"value": loss, "logger": False},
    "gradient": lambda m, loss, n: {"value": loss.requires_grad_(), "enable_graph": True},
    "nan": lambda m, loss, n: {"value": float("nan") if n == 1 else 1.0},
    "int tensor": lambda m, loss, n: {"value": torch.tensor(n)},
    "rank zero": lambda m, loss, n: {"value": loss, "rank_zero_only": True},
}
LOG: dict[str, dict[str, Any]] = {
    "step": {}, "plain": {}, "epoch": {"on_step": False, "on_epoch": True}, "both": {"on_step": True, "on_epoch": True},
    "sync": {"sync_dist": True}, "max": {"reduce_fx": "max"},
}
OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sgd": (optim.SGD, {}), "momentum": (optim.SGD, {"momentum": 0.9}), "adam": (optim.Adam, {}),
    "adamw fused": (optim.AdamW, {"fused": True}), "lbfgs": (optim.LBFGS, {"max_iter": 3}),
}
SCHEDULERS: dict[str, Callable[[Any], list[Any]]] = {
    "step epoch": lambda opt: [rates.StepLR(opt, 1, 0.5)],
    "step batch": lambda opt: [{"scheduler": rates.StepLR(opt, 2, 0.5), "interval": "step"}],
    "every 2 batches": lambda opt: [{"scheduler": rates.StepLR(opt, 1, 0.9), "interval": "step", "frequency": 2}],
    "every 2 epochs": lambda opt: [{"scheduler": rates.StepLR(opt, 1, 0.5), "frequency": 2, "name": "named"}],
    "plateau val": lambda opt: [{"scheduler": rates.ReduceLROnPlateau(opt, patience=0), "monitor": "val_loss"}],
    "plateau train": lambda opt: [{"scheduler": rates.ReduceLROnPlateau(opt), "monitor": "train_loss"}],
    "one cycle": lambda opt: [{"scheduler": rates.OneCycleLR(opt, 0.2, 40, cycle_momentum=False), "interval": "step"}],
    "lambda": lambda opt: [rates.LambdaLR(opt, lambda n: 1 / (1 + n))],
    "cosine": lambda opt: [rates.CosineAnnealingWarmRestarts(opt, 2)],
    "two": lambda opt: [rates.StepLR(opt, 1, 0.5), {"scheduler": rates.StepLR(opt, 2, 0.9), "interval": "step"}],
}
CALLBACKS: dict[Any, tuple[Any, dict[str, Any]]] = {
    "lambda": (cb.LambdaCallback, {"on_train_start": CALLED}), "timer": (cb.Timer, {"duration": timedelta(hours=1)}),
    "learning rate": (cb.LearningRateMonitor, {"logging_interval": "step"}), "rich": (cb.RichProgressBar, {}),
    "summary": (cb.ModelSummary, {"max_depth": 2}),
    "early": (cb.EarlyStopping, {"monitor": "val_loss", "patience": 0, "strict": False}),
    "early patient": (cb.EarlyStopping, {"monitor": "val_loss", "patience": 1, "mode": "max", "strict": False}),
    "early at start": (cb.EarlyStopping, {"monitor": "train_loss", "check_on_train_epoch_end": True, "strict": False}),
    "swa at half": (cb.StochasticWeightAveraging, {"swa_lrs": 0.05, "swa_epoch_start": 0.5, "annealing_epochs": 1}),
    "swa from 1": (cb.StochasticWeightAveraging, {"swa_lrs": 0.05, "swa_epoch_start": 1, "annealing_epochs": 1}),
    "more later": (cb.GradientAccumulationScheduler, {"scheduling": {0: 1, 1: 2}}),
    "less later": (cb.GradientAccumulationScheduler, {"scheduling": {0: 2, 1: 1}}),
}
TRAINER: dict[str, tuple[Any, ...]] = {
    "max_epochs": (2, 1, 3), "max_steps": (-1, 3, 5, 8), "min_epochs": (None, 2), "inference_mode": (True, False),
    "limit_train_batches": (None, 2, 0.5, 3), "limit_val_batches": (None, 0, 1, 0.5), "overfit_batches": (0, 1, 2, 0.5),
    "val_check_interval": (None, 2, 3, 0.5, 0.25, "across", "across odd"), "check_val_every_n_epoch": (1, 2),
    "num_sanity_val_steps": (0, 1, 2, -1), "fast_dev_run": (False, True, 2), "log_every_n_steps": (1, 2, 50),
    "reload_dataloaders_every_n_epochs": (0, 1, 2), "accumulate_grad_batches": (1, 2, 3, 4),
    "precision": ("32-true", "bf16-mixed", "64-true", "bf16-true"), "detect_anomaly": (False, True),
}
CHECKPOINT: dict[str, tuple[Any, ...]] = {
    "monitor": (None, "val_loss", "train_loss", "train_loss_epoch", "step"), "save_last": (None, True, "link"),
    "filename": (None, "{step}", "{epoch}-{val_loss:.2f}", "best", "a/{step}"), "save_weights_only": (False, True),
    "mode": ("min", "max"), "save_on_train_epoch_end": (None, True, False), "save_top_k": (1, -1, 2, 0),
}
OPTIONS: dict[str, tuple[Any, ...]] = {
    **TRAINER, **CHECKPOINT,
    "logger": ("own", False, "csv"), "progress_bar": (False, "tqdm", "rich"), "barebones": (False, True),
    "accumulates": (None, "more later", "less later"), "clip": (None, ("norm", 0.1), ("value", 0.01)),
    "dropout": (0.2, 0.0), "batch_norm": (False, True), "frozen": (False, True), "compiled": (None, "module", "net"),
    # data
    "data": ("map", "iterable", "any iterable", "dict", "two", "max_size_cycle", "min_size",
             "workers"), "batches": (6, 1, 2, 3, 5, 7), "short": (0, 2), "shuffle": (False, True),
    "sampler": (None, "weighted", "own", "own batches"), "drop_last": (False, True), "val_loaders": (1, 0, 2),
    "val_data": ("map", "iterable", "empty", "short"), "by": ("arguments", "module", "datamodule"),
    "batch_type": ("tuple", "dict"),
    # the module
    "optimizer": (*OPTIMIZERS, "none"), "groups": (1, 2), "configured": ("optimizer", "list", "dict", "lists"),
    "scheduler": (None, *SCHEDULERS),
    "manual": (False, "plain", "closure", "gan", "accumulating", "two backwards", "with schedulers"),
    "overrides": (None, *OVERRIDES), "keeps": (None, "state", "hyperparameters", "dataclass", "module"),
    "returns": ("loss", "dict", "sometimes none"), "unused": (False, "found", "not"),
    "log_train": ("step", "epoch", "both", "no"), "log_also": (None, *ALSO, "dict"),
    "log_in": (None, *HOOKS), "log_val": ("plain", "both", "without index", "sync", "max", "no"),
    # callbacks and checkpoints
    "callback": (None, "stateful", "lambda", "first", "stops validation", "learning rate", "timer", "summary"),
    "stops": (None, "should_stop", "early", "early patient", "early at start", "max_time"), "finetuning": (False, True),
    "swa": (None, "swa at half", "swa from 1"), "lr_finder": (None, "tuner", "callback"),
    "batch_size_finder": (None, "power", "binsearch", "callback"), "by_hand": (False, True),
    "checkpoint": ("off", "default", "one", "two"), "plugin": (None, "AsyncCheckpointIO", "TorchCheckpointIO"),
    "checkpoint_when": ({}, *({"every_n_train_steps": n} for n in (1, 2, 3, 4)), {"every_n_epochs": 2}),
    # faults, and code before and after
    "raises": (None, RuntimeError, KeyboardInterrupt, SystemExit, StopIteration),
    "raises_in": ("training_step", "validation_step", "data", "configure_optimizers", "on_save_checkpoint", *HOOKS),
    "raises_at": (3, 0, 1, 2, 4, 5, 6),
    "made": (None, "init_module", "decorator"), "more_epochs": (1, 0, 2),
    "then": (None, "validate", "validate elsewhere", "test", "predict", "fit on", "fit again", "load", "resume each",
             "resume last", "resume there"),
    # several processes
    "strategy": (None, "popen", "fork"), "static_graph": (False, True), "gradient_as_bucket_view": (False, True),
    "own_sampler": (False, True),
}
LIKELY = {
    "raises_in": 9, "checkpoint": 4, "monitor": 2, "checkpoint_when": 2, "then": 3, "compiled": 0.3, "lr_finder": 0.5,
    "batch_size_finder": 0.5, "progress_bar": 0.5, "barebones": 0.4, "made": 0.5, "overfit_batches": 0.5,
    "fast_dev_run": 0.5, "strategy": 0.35, "accumulates": 0.5, "swa": 0.5,
}
"""Weights of options that differ from their defaults more often than others."""
# fmt: on


def attempt(act: Callable[[], Any]) -> Any:
    """Call a function, handle its errors in the program, and continue."""
    try:
        return act()
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        observe("raised", error)
        return None


def random_trainer(observe: Any, own: Any, seed: int) -> None:
    """A training with random options, and further runs after it."""
    global o, make, fails
    o, make, fails = Options(seed, OPTIONS, LIKELY), own, True
    model_class, own_callback = classes()
    model_class = own.derived(model_class)
    kept: dict[Any, Callable[[], dict[str, Any]]] = {
        "hyperparameters": lambda: {"settings": {"width": 8}, "rate": 0.2},
        "dataclass": lambda: {"settings": Settings()},
        "module": lambda: {"head": nn.Linear(8, 1)},
    }

    def made() -> Any:
        return model_class(**kept.get(o.keeps, dict)())

    t = trainer_of(own_callback)
    if o.made == "decorator" and not IS_1X:
        model = t.init_module()(made)()
    else:
        with t.init_module() if o.made == "init_module" and not IS_1X else nullcontext():
            model = made()
    model = torch.compile(model, backend="eager") if o.compiled == "module" else model
    tune(t, model)
    fit: Any = attempt if o.raises else lambda act: act()
    fit(lambda: t.fit(model, **data_for()))
    fails = False
    tell(t, model)
    if o.by_hand:
        t.save_checkpoint("by_hand.ckpt")
        if o.plugin == "AsyncCheckpointIO":
            t.strategy.checkpoint_io.teardown()  # waits for the thread that writes
    epochs = o.max_epochs + o.more_epochs
    if o.then in ("validate", "validate elsewhere"):
        other = t if o.then == "validate" else trainer_of(own_callback, "evaluated")
        observe("validated", other.validate(model, **data_for(False), verbose=False))
    elif o.then in ("test", "predict"):
        observe(o.then, getattr(t, o.then)(model, loader(Numbers(6), 2)))
    elif o.then in ("fit on", "fit again"):
        t = t if o.then == "fit on" else trainer_of(own_callback, "again")
        t.fit_loop.max_epochs = epochs
        t.fit(model, **data_for())
    paths = sorted(glob.glob("**/*.ckpt", recursive=True), key=lambda path: (os.path.getmtime(path), path))
    for path in paths if o.then == "load" else ():
        loaded = attempt(lambda path=path: model_class.load_from_checkpoint(path, map_location="cpu"))
        observe(path, [loaded, str(getattr(loaded, "hparams", None))])
    resumed = {"resume each": paths, "resume last": paths[-1:], "resume there": paths[-1:]}
    for path in resumed.get(o.then, ()):
        place = "run" if o.then == "resume there" else f"resumed/{path.replace('/', '_')}"
        t, model = trainer_of(own_callback, place, max_epochs=epochs), made()
        attempt(lambda path=path, t=t, model=model: t.fit(model, **data_for(), ckpt_path=path))
    tell(t, model)


def tune(t: Any, model: Any) -> None:
    tuner = make(Tuner, t)
    if o.lr_finder == "tuner":
        found = tuner.lr_find(model, **data_for(), num_training=20)
        observe("lr_find", found and [found.results, found.suggestion(), model.lr])
    if o.batch_size_finder in ("power", "binsearch") and o.by != "arguments":
        more = {"mode": o.batch_size_finder, "max_trials": 2, "steps_per_trial": 1}
        observe("batch size", tuner.scale_batch_size(model, **data_for(), **more))


def tell(t: Any, model: Any) -> None:
    status = [t.global_step, t.current_epoch, str(t.state.status), shown(dict(t.callback_metrics))]
    observe("fitted", [*status, weights(getattr(model, "_orig_mod", model))])
    if t.checkpoint_callback is not None:
        observe("best", [t.checkpoint_callback.best_model_path, t.checkpoint_callback.best_model_score])
