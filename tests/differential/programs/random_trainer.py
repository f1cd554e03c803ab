"""A random training: every option of `OPTIONS` as usual, or not."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Callable, Optional

import torch
from torch import nn
from torch.optim import lr_scheduler as rates
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    WeightedRandomSampler,
)

from tests.differential.observing import Log, Options, Watch, module, observe, pl, shown, weights

cb = pl.callbacks
CALLBACK = "callback "


o: Options
fails = True


# --------------------------------------------------------------------------------------------------------------- data


class Numbers(Dataset[Any]):
    def __init__(self, length: int, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.x, self.y = (torch.randn(length, width, generator=generator) for width in (8, 1))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Any:
        if index == 9:
            fail("data")
        if o.batch_type == "dict":
            return {"x": self.x[index], "y": self.y[index]}
        return self.x[index], self.y[index]


class Stream(IterableDataset[Any]):
    def __init__(self, data: Any) -> None:
        self.data = data

    def __iter__(self) -> Any:
        return (self.data[index] for index in range(len(self.data)))


class Sized(Stream):
    def __len__(self) -> int:
        return len(self.data)


class Batches:
    """Any iterable that gives batches."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Any:
        return iter(self.loader)


class Batch:
    """A batch of the program's own type."""

    def __init__(self, items: Any) -> None:
        self.x, self.y = (torch.stack(parts) for parts in zip(*items))

    def to(self, *arguments: Any, **named: Any) -> Batch:
        self.x, self.y = self.x.to(*arguments, **named), self.y.to(*arguments, **named)
        return self


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
    if o.batch_type == "custom":
        more["collate_fn"] = Batch
    return DataLoader(data, batch_size=size, **more)


KINDS_OF_DATA = ("iterable", "iterable with length", "any iterable", "dict", "two", "max_size", "min_size", "workers")


def train_loader(size: int = 4) -> Any:
    length = o.batches * 4 - o.short
    data, kind = Numbers(length), o.data
    if kind in ("iterable", "iterable with length"):
        return loader((Stream if kind == "iterable" else Sized)(data), size)
    plain, other = loader(data, size), loader(Numbers(6, seed=5), 2)
    if kind in ("map", "workers"):
        more: dict[str, Any] = {"num_workers": 1} if kind == "workers" else {}
        sampler = o.sampler
        if sampler == "own batches":
            batches = BatchSampler(SequentialSampler(data), size, False)
            return DataLoader(data, batch_sampler=batches, collate_fn=plain.collate_fn)
        if sampler is None:
            more["shuffle"] = o.shuffle
        else:
            more["sampler"] = Backwards(data) if sampler == "own" else WeightedRandomSampler([1.0] * length, length)
        return loader(data, size, drop_last=o.drop_last, **more)
    if kind == "any iterable":
        return Batches(plain)
    if kind in ("dict", "two"):
        return {"batch": plain} if kind == "dict" else [plain, other]
    mode = "max_size_cycle" if kind == "max_size" else kind
    return module("pytorch.utilities").CombinedLoader({"batch": plain, "other": other}, mode=mode)


def val_loaders(size: int = 4) -> Any:
    number = o.val_loaders
    kind = o.val_data
    first = {"map": Numbers(12, 1), "iterable": Stream(Numbers(12, 1)), "empty": Numbers(0), "short": Numbers(3, 1)}
    return [loader(first[kind], size), loader(Numbers(6, 2), size)][:number] or None


class Data(pl.LightningDataModule):
    def __init__(self) -> None:
        super().__init__()
        self.batch_size = 4

    def setup(self, stage: str) -> None:
        observe("datamodule setup", stage)

    def teardown(self, stage: str) -> None:
        observe("datamodule teardown", stage)

    def state_dict(self) -> Any:
        return {"kept": 3}

    def load_state_dict(self, state: Any) -> None:
        observe("datamodule state", state)

    def train_dataloader(self) -> Any:
        return train_loader(self.batch_size)

    def val_dataloader(self) -> Any:
        return val_loaders() or []


def data_for(model: Any, train: bool = True) -> dict[str, Any]:
    """The data, as ``fit`` and ``validate`` take them."""
    by = o.by
    if by == "arguments":
        return (
            {"train_dataloaders": train_loader(), "val_dataloaders": val_loaders()}
            if train
            else {"dataloaders": val_loaders()}
        )
    return {"datamodule": Data()} if by == "datamodule" else {}


# ------------------------------------------------------------------------------------------------------------- module


def fail(where: str, trainer: Any = None) -> None:
    """Raise on purpose, if the program is one that fails here."""
    error = o.raises
    if error is None or not fails or where != o.raises_in:
        return
    if trainer is None or trainer.global_step >= o.raises_at:
        raise error(f"on purpose, {where}")


RAISES_IN = (
    *(
        "validation_step",
        "on_train_batch_end",
        "on_validation_end",
        "on_validation_start",
        "on_train_epoch_end",
        "data",
    ),
    *("on_before_optimizer_step", "setup", "configure_optimizers", "on_train_start", "on_save_checkpoint"),
    *(f"callback on_{name}" for name in ("train_batch_start", "train_batch_end", "validation_end", "train_end")),
)
LOG_IN = (
    *("on_train_epoch_end", "on_train_start", "on_train_batch_start", "on_before_optimizer_step", "on_train_batch_end"),
    *("on_validation_epoch_end", "on_validation_batch_end", "on_train_epoch_start", "callback on_train_epoch_end"),
    *("callback on_train_batch_end", "callback on_validation_end"),
)
ALSO: dict[str, Callable[[Any, Any, int], dict[str, Any]]] = {
    "int": lambda m, loss, n: {"value": n},
    "large int": lambda m, loss, n: {"value": 2**24 + 1 + n, "on_epoch": True, "reduce_fx": "max"},
    "float": lambda m, loss, n: {"value": 0.1 + n, "on_epoch": True},
    "bool": lambda m, loss, n: {"value": n % 2 == 0},
    "double": lambda m, loss, n: {"value": torch.tensor(0.1, dtype=torch.float64) * (n + 1), "on_epoch": True},
    "half": lambda m, loss, n: {"value": loss.half(), "on_epoch": True},
    "max": lambda m, loss, n: {"value": loss, "on_step": False, "on_epoch": True, "reduce_fx": "max"},
    "min": lambda m, loss, n: {"value": loss, "on_epoch": True, "reduce_fx": torch.min},
    "sum": lambda m, loss, n: {"value": loss, "on_epoch": True, "reduce_fx": "sum"},
    "batch_size": lambda m, loss, n: {"value": loss, "on_epoch": True, "batch_size": n + 1},
    "prog_bar": lambda m, loss, n: {"value": loss, "prog_bar": True},
    "without logger": lambda m, loss, n: {"value": loss, "logger": False, "on_epoch": True},
    "gradient": lambda m, loss, n: {"value": loss.requires_grad_(), "on_epoch": True, "enable_graph": True},
    "nan": lambda m, loss, n: {"value": float("nan") if n == 1 else 1.0, "on_epoch": True},
    "int tensor": lambda m, loss, n: {"value": torch.tensor(n), "on_epoch": True},
    "rank zero": lambda m, loss, n: {"value": loss, "rank_zero_only": True},
    "metric": lambda m, loss, n: {"value": m.measured(loss), "on_epoch": True},
}
LOG_TRAIN = {"step": {}, "epoch": {"on_step": False, "on_epoch": True}, "both": {"on_step": True, "on_epoch": True}}
LOG_VAL: dict[str, dict[str, Any]] = {"both": {"on_step": True, "on_epoch": True}, "max": {"reduce_fx": "max"}}
LOG_VAL |= {"sync": {"sync_dist": True}, "plain": {}}


@dataclass
class Settings:
    width: int = 8
    rate: float = 0.1


class Net(nn.Linear):
    """A module that stands in the hyperparameters."""


def sized() -> dict[str, int]:
    """For a batch whose size Lightning cannot know."""
    return {"batch_size": 4} if o.batch_type == "custom" else {}


class Plain(pl.LightningModule):
    """The module; what it overrides besides is put in by `model_class`."""

    def __init__(self, settings: Any = None, rate: float = 0.1, head: Optional[nn.Module] = None) -> None:
        super().__init__()
        if o.keeps not in (None, "state"):
            self.save_hyperparameters()
        torch.manual_seed(0)
        self.lr, self.batch_size, self.own_head = rate, 4, head
        self.net: Any = None
        self.automatic_optimization = not o.manual
        self.error: Any = None
        if o.log_also == "metric":
            import torchmetrics

            self.error = torchmetrics.MeanSquaredError()
        if o.unused:
            self.spare = nn.Linear(3, 3)
        if o.manual == "gan":
            self.critic = nn.Linear(1, 1)
        if o.frozen:
            self.scale = nn.Linear(8, 8).requires_grad_(False).eval()
        if o.overrides != "configure_model":
            self.build()

    def build(self) -> None:
        parts = [nn.Linear(8, 8), nn.BatchNorm1d(8) if o.batch_norm else nn.Identity(), nn.ReLU()]
        parts += [nn.Dropout(o.dropout), self.own_head or nn.Linear(8, 1)]
        self.net = nn.Sequential(*parts)
        if o.compiled == "net":
            self.net = torch.compile(self.net, backend="eager")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(self.scale(x) if o.frozen else x)

    def loss(self, batch: Any, training: bool = False) -> torch.Tensor:
        if training and o.data in ("dict", "max_size", "min_size", "two"):
            batch = batch["batch"] if isinstance(batch, dict) else batch[0]
        x, y = (
            (batch["x"], batch["y"])
            if isinstance(batch, dict)
            else ((batch.x, batch.y) if isinstance(batch, Batch) else batch)
        )
        return nn.functional.mse_loss(self(x), y)

    def measured(self, loss: Any) -> Any:
        self.error(loss.reshape(1).float(), torch.zeros(1))
        return self.error

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        fail("training_step", self.trainer)
        kind = o.manual
        loss = MANUAL[kind](self, batch, batch_idx) if kind else self.loss(batch, training=True)
        how = o.log_train
        if how != "no":
            self.log("train_loss", loss, **LOG_TRAIN[how], **sized())
        also = o.log_also
        if also == "dict":
            self.log_dict({"a": loss.detach(), "b": batch_idx + 0.5}, on_step=False, on_epoch=True, **sized())
        elif also:
            self.log("group/also", **{"on_step": True, **sized(), **ALSO[also](self, loss.detach().clone(), batch_idx)})
        observe("training_step", loss)
        if o.rank_only and self.trainer.is_global_zero:
            self.only_first_rank(batch, loss)
        if kind:
            return loss.detach()
        returns = o.returns
        if returns == "dict":
            return {"loss": loss, "kept": batch_idx}
        return None if returns == "sometimes none" and batch_idx % 3 == 1 else loss

    def only_first_rank(self, batch: Any, loss: torch.Tensor) -> None:
        what = o.rank_only
        if what == "logging":
            self.log("only_zero", loss.detach(), rank_zero_only=True)
        elif what == "diagnostics":
            observe("gap", self.loss(batch, training=True))
        else:
            x = torch.ones(1, 8, requires_grad=True, dtype=next(self.parameters()).dtype)
            observe("saliency", torch.autograd.grad(self.net(x).sum(), x)[0])

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        fail("validation_step", self.trainer)
        loss, how = self.loss(batch), o.log_val
        if how == "without index":
            self.log("val_loss" if dataloader_idx == 0 else "other", loss, add_dataloader_idx=False, **sized())
        elif how != "no":
            self.log("val_loss", loss, **LOG_VAL[how], **sized())
        observe("validation_step", loss)

    def test_step(self, batch: Any, batch_idx: int) -> None:
        self.log("test_loss", self.loss(batch), **sized())

    def predict_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        return self.loss(batch)

    def configure_optimizers(self) -> Any:
        fail("configure_optimizers")
        parameters: Any = self.net.parameters() if not hasattr(self, "spare") else self.parameters()
        if o.groups == 2:
            parameters = [
                {"params": self.net[0].parameters(), "lr": self.lr / 10},
                {"params": self.net[-1].parameters()},
            ]
        kind = o.optimizer
        if kind == "none":
            return None
        make: dict[str, Callable[[], Any]] = {
            "sgd": lambda: torch.optim.SGD(parameters, lr=self.lr),
            "momentum": lambda: torch.optim.SGD(parameters, lr=self.lr, momentum=0.9),
            "adam": lambda: torch.optim.Adam(parameters, lr=self.lr),
            "adamw fused": lambda: torch.optim.AdamW(parameters, lr=self.lr, fused=True),
            "lbfgs": lambda: torch.optim.LBFGS(parameters, lr=self.lr, max_iter=3),
        }
        optimizer = make[kind]()
        if o.manual == "gan":
            return optimizer, torch.optim.SGD(self.critic.parameters(), lr=0.01)
        scheduler = o.scheduler
        if o.manual == "with schedulers":
            scheduler = "step epoch"
        form = o.configured
        if scheduler:
            entries = SCHEDULERS[scheduler](optimizer)
            if form == "dict" and len(entries) == 1:
                return {"optimizer": optimizer, "lr_scheduler": entries[0]}
            return [optimizer], entries
        return {"list": [optimizer], "dict": {"optimizer": optimizer}, "lists": ([optimizer], [])}.get(form, optimizer)


SCHEDULERS: dict[str, Callable[[Any], list[Any]]] = {
    "step epoch": lambda opt: [rates.StepLR(opt, 1, 0.5)],
    "step batch": lambda opt: [{"scheduler": rates.StepLR(opt, 2, 0.5), "interval": "step"}],
    "every 2 batches": lambda opt: [{"scheduler": rates.StepLR(opt, 1, 0.9), "interval": "step", "frequency": 2}],
    "every 2 epochs": lambda opt: [{"scheduler": rates.StepLR(opt, 1, 0.5), "frequency": 2, "name": "named"}],
    "plateau val": lambda opt: [_plateau(opt, "val_loss")],
    "plateau train": lambda opt: [_plateau(opt, "train_loss")],
    "one cycle": lambda opt: [
        {"scheduler": rates.OneCycleLR(opt, 0.2, total_steps=40, cycle_momentum=False), "interval": "step"}
    ],
    "lambda": lambda opt: [rates.LambdaLR(opt, lambda n: 1 / (1 + n))],
    "cosine": lambda opt: [rates.CosineAnnealingWarmRestarts(opt, 2)],
    "two": lambda opt: [rates.StepLR(opt, 1, 0.5), {"scheduler": rates.StepLR(opt, 2, 0.9), "interval": "step"}],
}


def _plateau(optimizer: Any, monitor: str) -> Any:
    return {"scheduler": rates.ReduceLROnPlateau(optimizer, patience=0), "monitor": monitor, "strict": False}


def _by_hand(self: Any, batch: Any, batch_idx: int) -> Any:
    optimizer = self.optimizers()
    loss = self.loss(batch, training=True)
    optimizer.zero_grad()
    self.manual_backward(loss)
    self.clip_gradients(optimizer, gradient_clip_val=0.5)
    optimizer.step()
    if o.manual == "with schedulers" and self.trainer.is_last_batch:
        self.lr_schedulers().step()
    return loss


def _by_closure(self: Any, batch: Any, batch_idx: int) -> Any:
    optimizer = self.optimizers()

    def closure() -> Any:
        loss = self.loss(batch, training=True)
        optimizer.zero_grad()
        self.manual_backward(loss)
        return loss

    optimizer.step(closure=closure)
    return self.loss(batch, training=True).detach()


def _accumulating(self: Any, batch: Any, batch_idx: int) -> Any:
    optimizer, loss = self.optimizers(), self.loss(batch, training=True) / 2
    self.manual_backward(loss)
    if (batch_idx + 1) % 2 == 0:
        optimizer.step()
        optimizer.zero_grad()
    return loss


def _two_backwards(self: Any, batch: Any, batch_idx: int) -> Any:
    optimizer = self.optimizers()
    optimizer.zero_grad()
    for _ in range(2):
        loss = self.loss(batch, training=True)
        self.manual_backward(loss)
    optimizer.step()
    return loss


def _gan(self: Any, batch: Any, batch_idx: int) -> Any:
    loss = self.loss(batch, training=True)
    for turn, optimizer in enumerate(self.optimizers()):
        self.toggle_optimizer(optimizer)
        loss = self.critic(loss.detach().reshape(1, 1)).pow(2).mean() if turn else loss
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        self.untoggle_optimizer(optimizer)
    return loss


MANUAL: dict[str, Callable[[Any, Any, int], Any]] = {
    "plain": _by_hand,
    "with schedulers": _by_hand,
    "closure": _by_closure,
    "accumulating": _accumulating,
    "two backwards": _two_backwards,
    "gan": _gan,
}


def _optimizer_step(self: Any, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None) -> None:
    observe("optimizer_step", [epoch, batch_idx])
    if o.overrides == "closure again" and batch_idx % 2:
        optimizer_closure()
    else:
        optimizer.step(closure=optimizer_closure)


def _backward(self: Any, loss: Any, *arguments: Any, **named: Any) -> None:
    observe("backward", loss)
    loss.backward()


def _clipping(self: Any, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None) -> None:
    observe("clipping", [gradient_clip_val, str(gradient_clip_algorithm)])
    self.clip_gradients(optimizer, gradient_clip_val=0.2, gradient_clip_algorithm="norm")


def _zero_grad(self: Any, epoch: int, batch_idx: int, optimizer: Any) -> None:
    optimizer.zero_grad(set_to_none=False)


def _transfer(self: Any, batch: Any, device: Any, dataloader_idx: int) -> Any:
    observe("transfer", [str(device), dataloader_idx])
    return pl.LightningModule.transfer_batch_to_device(self, batch, device, dataloader_idx)


def _configure_callbacks(self: Any) -> list[Any]:
    return [cb.LambdaCallback(on_train_epoch_end=lambda *_: observe("configured callback"))]


def _configure_model(self: Any) -> None:
    if self.net is None:
        self.build()


def _from_iterator(self: Any, dataloader_iter: Any) -> Any:
    got = next(dataloader_iter)
    batch, batch_idx = (got[0], got[1]) if isinstance(got, tuple) and len(got) == 3 else (got, 0)
    loss = self.loss(batch, training=True)
    self.log("train_loss", loss, batch_size=4)
    observe("from the iterator", [batch_idx, loss])
    return loss


def _without_index(self: Any, batch: Any) -> Any:
    return Plain.training_step(self, batch, self.trainer.global_step)


OVERRIDES: dict[str, dict[str, Any]] = {
    "optimizer_step": {"optimizer_step": _optimizer_step},
    "closure again": {"optimizer_step": _optimizer_step},
    "backward": {"backward": _backward},
    "clipping": {"configure_gradient_clipping": _clipping},
    "zero_grad": {"optimizer_zero_grad": _zero_grad},
    "transfer": {"transfer_batch_to_device": _transfer},
    "configure_callbacks": {"configure_callbacks": _configure_callbacks},
    "configure_model": {"configure_model": _configure_model},
    "dataloader_iter": {"training_step": _from_iterator},
    "optional batch_idx": {"training_step": _without_index},
}


def _hooks(hooks: dict[str, list[Callable[[Any, Any], None]]], base: Any, of_callback: bool) -> dict[str, Any]:
    """Methods that do what stands in ``hooks``, given the trainer and the module."""

    def method(name: str, acts: Any) -> Any:
        def hook(self: Any, *arguments: Any, **named: Any) -> Any:
            result = getattr(base, name)(self, *arguments, **named)
            for act in acts:
                act(arguments[0] if of_callback else self.trainer, arguments[1] if of_callback else self)
            return result

        return hook

    return {name: method(name, acts) for name, acts in hooks.items()}


def made_classes() -> tuple[Any, Any]:
    """The module's class and the callback's, with what the program does in their hooks."""
    acts: dict[bool, dict[str, list[Callable[[Any, Any], None]]]] = {True: {}, False: {}}

    def add(hook: str, act: Callable[[Any, Any], None]) -> None:
        acts[hook.startswith(CALLBACK)].setdefault(hook.removeprefix(CALLBACK), []).append(act)

    log_in, raises_in = o.log_in, o.raises_in
    if log_in:
        add(log_in, lambda trainer, root: root.log("in_hook", float(trainer.global_step)))
    if o.raises and raises_in not in (*("training_step", "validation_step", "data", "configure_optimizers"),):
        add(raises_in, lambda trainer, root: fail(raises_in, trainer))
    if o.stops == "should_stop":
        add("on_train_batch_end", lambda trainer, _: setattr(trainer, "should_stop", trainer.global_step >= 4))
    kind = o.callback
    if kind == "stops validation":
        add("callback on_train_epoch_start", lambda trainer, _: setattr(trainer, "limit_val_batches", 1))
    ema = o.ema
    if ema:
        where = CALLBACK if ema == "callback" else ""
        add(f"{where}on_fit_start", lambda _, root: _AVERAGE.update(average=_copied(root), raw=_copied(root)))
        add(f"{where}on_train_batch_end", lambda _, root: _average(root))
        add(f"{where}on_validation_start", lambda _, root: _lend(root, "average"))
        add(f"{where}on_validation_end", lambda _, root: _lend(root, "raw"))
    methods = _hooks(acts[False], Plain, False) | OVERRIDES.get(o.overrides, {})
    if o.keeps == "state in checkpoint":
        methods["on_save_checkpoint"] = lambda self, checkpoint: checkpoint.update(mine=self.trainer.global_step)
        methods["on_load_checkpoint"] = lambda self, checkpoint: observe("mine", checkpoint.get("mine"))
    if o.by == "module":
        methods["train_dataloader"] = lambda self: train_loader(self.batch_size)
        methods["val_dataloader"] = lambda self: val_loaders() or []
    home = {"__module__": __name__}
    callback_methods = _hooks(acts[True], pl.Callback, True)
    if kind == "stateful":
        callback_methods["state_dict"] = lambda self: {"count": 3}
        callback_methods["load_state_dict"] = lambda self, state: observe("count", state)
    own = type("OwnCallback", (pl.Callback,), home | callback_methods) if callback_methods else None
    return type("Model", (Plain,), home | methods), own


_AVERAGE: dict[str, Any] = {}


def _copied(root: Any) -> Any:
    return [p.detach().clone() for p in root.parameters()]


def _average(root: Any) -> None:
    for mean, p in zip(_AVERAGE["average"], root.parameters()):
        mean.mul_(0.9).add_(p.detach(), alpha=0.1)


def _lend(root: Any, name: str) -> None:
    if root.trainer.state.fn == "fit" and _AVERAGE:
        _AVERAGE["raw"] = _copied(root) if name == "average" else _AVERAGE["raw"]
        for p, value in zip(root.parameters(), _AVERAGE[name]):
            p.data.copy_(value)


# ------------------------------------------------------------------------------------------------------------ trainer


class Saving(cb.ModelCheckpoint):
    """A subclass that looks at what is saved, and when."""

    def _save_checkpoint(self, trainer: Any, filepath: str) -> None:
        super()._save_checkpoint(trainer, filepath)
        observe("saved", [filepath, trainer.global_step, weights(trainer.lightning_module)])

    def state_dict(self) -> Any:
        return {**super().state_dict(), "mine": 1}

    def load_state_dict(self, state: Any) -> None:
        observe("state", sorted(state))
        super().load_state_dict(state)


class Unfreeze(cb.BaseFinetuning):
    def freeze_before_training(self, pl_module: Any) -> None:
        self.freeze(pl_module.net[0])

    def finetune_function(self, pl_module: Any, epoch: int, optimizer: Any) -> None:
        if epoch == 1:
            self.unfreeze_and_add_param_group(pl_module.net[0], optimizer)


def checkpoints(own: Any, directory: str) -> list[Any]:
    kind = o.checkpoint
    if kind in ("off", "default"):
        return []
    top = {"save_top_k": o.save_top_k}
    monitor = o.monitor
    if monitor is None and top["save_top_k"] == 2:
        monitor = "step"
    when = o.checkpoint_when
    cls = own.derived(Saving if kind == "subclass" else cb.ModelCheckpoint)
    more = {"save_last": o.save_last, "filename": o.filename}
    more |= {"save_weights_only": o.save_weights_only, "mode": o.mode}
    found = [cls(directory, monitor=monitor, **top, **when, **more, save_on_train_epoch_end=o.at_end)]
    if kind == "two":
        found.append(cb.ModelCheckpoint(f"{directory}/other", every_n_train_steps=2, save_top_k=-1))
    return found


def callbacks(own: Any, directory: str, own_callback: Any) -> list[Any]:
    found = checkpoints(own, directory)
    found += [own(own_callback)] if own_callback else []
    kind = o.callback
    found += {
        "lambda": lambda: [cb.LambdaCallback(on_train_start=lambda *_: observe("lambda"))],
        "learning rate": lambda: [own(cb.LearningRateMonitor, "step")] if o.logger else [],
        "timer": lambda: [own(cb.Timer, timedelta(hours=1))],
        "summary": lambda: [own(cb.ModelSummary, 2)],
    }.get(kind, list)()
    found += {
        "early": lambda: [own(cb.EarlyStopping, "val_loss", patience=0, strict=False)],
        "early patient": lambda: [cb.EarlyStopping("val_loss", patience=1, mode="max", strict=False)],
        "early at start": lambda: [
            cb.EarlyStopping("train_loss", patience=0, check_on_train_epoch_end=True, strict=False)
        ],
    }.get(o.stops, list)()
    if o.swa:
        start = o.swa
        found.append(own(cb.StochasticWeightAveraging, swa_lrs=0.05, swa_epoch_start=start, annealing_epochs=1))
    if o.finetuning:
        found.append(own(Unfreeze))
    if o.accumulation_scheduler:
        found.append(own(cb.GradientAccumulationScheduler, o.accumulation_scheduler))
    if o.lr_finder == "callback":
        found.append(own(cb.LearningRateFinder, num_training_steps=20))
    if o.batch_size_finder == "callback":
        found.append(own(cb.BatchSizeFinder, max_trials=2, steps_per_trial=1))
    if o.progress_bar == "rich":
        found.append(own(cb.RichProgressBar))
    return [Watch(), *found] if kind == "first" else [*found, Watch()]


def trainer_of(own: Any, own_callback: Any, directory: str = "run", **more: Any) -> Any:
    logger = o.logger
    epochs = o.epochs
    given: dict[str, Any] = {
        "accelerator": "cpu",
        "devices": 1,
        "max_epochs": epochs,
        "max_steps": o.max_steps,
        "min_epochs": o.min_epochs,
        "default_root_dir": directory,
        "logger": {"own": lambda: own(Log), "csv": lambda: own(pl.loggers.CSVLogger, directory)}.get(logger, bool)(),
        "enable_progress_bar": bool(o.progress_bar),
        "enable_model_summary": o.callback == "summary",
        "num_sanity_val_steps": o.sanity,
        "log_every_n_steps": o.log_every,
        "limit_val_batches": o.limit_val_batches,
        "check_val_every_n_epoch": o.check_val_every_n_epoch,
        "fast_dev_run": o.fast_dev_run,
        "accumulate_grad_batches": 1 if o.accumulation_scheduler or o.manual else o.accumulate,
        "reload_dataloaders_every_n_epochs": o.reload_every,
        "inference_mode": o.inference_mode,
        "detect_anomaly": o.detect_anomaly,
        "precision": o.precision,
        "callbacks": callbacks(own, directory, own_callback),
        "enable_checkpointing": o.checkpoint != "off",
    }
    given["limit_train_batches"] = o.limit_train_batches
    given["overfit_batches"] = o.overfit_batches
    interval = o.val_check_interval
    if isinstance(interval, str):
        given.update(val_check_interval=4 if interval == "across" else 5, check_val_every_n_epoch=None)
    else:
        given["val_check_interval"] = interval
    if not o.manual:
        algorithm, value = o.clip
        given.update(gradient_clip_algorithm=algorithm, gradient_clip_val=value)
    if o.stops == "max_time":
        given["max_time"] = {"hours": 1}
    start = o.strategy
    if start:
        flags = {"static_graph": True} if o.static_graph else {}
        flags |= {"find_unused_parameters": True} if o.unused == "found" else {}
        flags |= {"gradient_as_bucket_view": True} if o.bucket_view else {}
        strategy = module("pytorch.strategies").DDPStrategy
        given["strategy"] = own(strategy, start_method=start, timeout=timedelta(seconds=45), **flags)
        given.update(devices=2, use_distributed_sampler=not o.own_sampler)
    if o.async_checkpoint:
        given["plugins"] = [own(module("pytorch.plugins.io").AsyncCheckpointIO)]
    if o.barebones:
        kept = ("accelerator", "devices", "max_epochs", "max_steps", "default_root_dir", "callbacks", "precision")
        given = {name: value for name, value in given.items() if name in kept}
        given.update(barebones=True, callbacks=[])
    return own(pl.Trainer, **{**given, **more})


# fmt: off
THEN = ("validate", "validate elsewhere", "test", "predict", "fit on", "fit again", "load", "resume each",
        "resume last", "resume there")
OPTIONS: dict[str, tuple[Any, ...]] = {
    # the loop
    "epochs": (2, 1, 3), "max_steps": (-1, 3, 5, 8), "min_epochs": (None, 2), "accumulate": (1, 2, 3, 4),
    "limit_train_batches": (None, 2, 0.5, 3), "limit_val_batches": (None, 0, 1, 0.5), "overfit_batches": (0, 1, 2, 0.5),
    "val_check_interval": (None, 2, 3, 0.5, 0.25, "across", "across odd"), "check_val_every_n_epoch": (1, 2),
    "sanity": (0, 1, 2, -1), "fast_dev_run": (False, True, 2), "reload_every": (0, 1, 2), "log_every": (1, 2, 50),
    "logger": ("own", False, "csv"), "progress_bar": (False, "tqdm", "rich"), "inference_mode": (True, False),
    "barebones": (False, True), "accumulation_scheduler": (None, {0: 1, 1: 2}, {0: 2, 1: 1}),
    # numbers
    "precision": ("32-true", "bf16-mixed", "64-true", "bf16-true"), "detect_anomaly": (False, True),
    "clip": ((None, None), ("norm", 0.1), ("value", 0.01)), "dropout": (0.2, 0.0), "batch_norm": (False, True),
    "frozen": (False, True), "compiled": (None, "module", "net"),
    # data
    "data": ("map", *KINDS_OF_DATA), "batches": (6, 1, 2, 3, 5, 7), "short": (0, 2), "shuffle": (False, True),
    "sampler": (None, "weighted", "own", "own batches"), "drop_last": (False, True), "val_loaders": (1, 0, 2),
    "val_data": ("map", "iterable", "empty", "short"), "by": ("arguments", "module", "datamodule"),
    "batch_type": ("tuple", "dict", "custom"),
    # the module
    "optimizer": ("sgd", "momentum", "adam", "adamw fused", "lbfgs", "none"), "groups": (1, 2),
    "configured": ("optimizer", "list", "dict", "lists"), "scheduler": (None, *SCHEDULERS), "manual": (False, *MANUAL),
    "returns": ("loss", "dict", "sometimes none"), "overrides": (None, *OVERRIDES), "ema": (None, "module", "callback"),
    "keeps": (None, "state in checkpoint", "hyperparameters", "dataclass", "module"), "unused": (False, "found", "not"),
    "log_train": ("step", "epoch", "both", "no"), "log_also": (None, *ALSO, "dict"), "log_in": (None, *LOG_IN),
    "log_val": ("plain", "both", "without index", "sync", "max", "no"),
    # callbacks
    "callback": (None, "stateful", "lambda", "first", "stops validation", "learning rate", "timer", "summary"),
    "stops": (None, "should_stop", "early", "early patient", "early at start", "max_time"), "swa": (None, 0.5, 1),
    "finetuning": (False, True), "lr_finder": (None, "tuner", "callback"),
    "batch_size_finder": (None, "power", "binsearch", "callback"),
    # checkpoints
    "checkpoint": ("off", "default", "ModelCheckpoint", "two", "subclass"), "save_top_k": (1, -1, 2, 0),
    "monitor": (None, "val_loss", "train_loss", "train_loss_epoch", "step"), "save_last": (None, True, "link"),
    "checkpoint_when": ({}, *({"every_n_train_steps": n} for n in (1, 2, 3, 4)), {"every_n_epochs": 2}),
    "filename": (None, "{step}", "{epoch}-{val_loss:.2f}", "best", "a/{step}"), "save_weights_only": (False, True),
    "mode": ("min", "max"), "at_end": (None, True, False), "async_checkpoint": (False, True), "by_hand": (False, True),
    # faults
    "raises": (None, RuntimeError, KeyboardInterrupt, SystemExit, StopIteration),
    "raises_in": ("training_step", *RAISES_IN), "raises_at": (3, 0, 1, 2, 4, 5, 6),
    # what comes before and after
    "made": (None, "init_module", "decorator"), "then": (None, *THEN), "more_epochs": (1, 0, 2),
    # several processes
    "strategy": (None, "popen", "fork"), "static_graph": (False, True), "bucket_view": (False, True),
    "own_sampler": (False, True), "rank_only": (None, "diagnostics", "logging", "backward"),
}
LIKELY = {
    "raises_in": 9, "checkpoint": 4, "monitor": 2, "checkpoint_when": 2, "then": 3, "compiled": 0.3, "lr_finder": 0.5,
    "batch_size_finder": 0.5, "progress_bar": 0.5, "barebones": 0.4, "made": 0.5, "overfit_batches": 0.5,
    "fast_dev_run": 0.5, "strategy": 0.35, "accumulation_scheduler": 0.5, "swa": 0.5,
}
"""How much more often than others an option is not as usual."""
# fmt: on


# ------------------------------------------------------------------------------------------------------------ program


def attempt(act: Callable[[], Any]) -> Any:
    """Errors that the program itself handles, and goes on."""
    try:
        return act()
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        observe("raised", error)
        return None


def random_trainer(observe: Any, own: Any, seed: int) -> None:
    """A training with random options, and what comes after it."""
    global o, fails
    o = Options(seed, OPTIONS, LIKELY)
    model_class, own_callback = made_classes()
    model_class = own.derived(model_class)
    arguments: dict[str, Any] = {
        "hyperparameters": {"settings": {"width": 8}, "rate": 0.2},
        "dataclass": {"settings": Settings()},
        "module": {"head": Net(8, 1)},
    }.get(o.keeps, {})
    t = trainer_of(own, own_callback)
    made = o.made
    if made == "init_module":
        with t.init_module():
            model = model_class(**arguments)
    elif made == "decorator":
        model = t.init_module()(model_class)(**arguments)
    else:
        model = model_class(**arguments)
    if o.compiled == "module":
        model = torch.compile(model, backend="eager")
    tune(own, t, model)
    if o.raises:
        attempt(lambda: t.fit(model, **data_for(model)))
        fails = False
    else:
        t.fit(model, **data_for(model))
    tell(t, model)
    if o.by_hand:
        t.save_checkpoint("by_hand.ckpt")
        if o.async_checkpoint:
            t.strategy.checkpoint_io.teardown()  # waits for the thread that writes
    epochs = o.epochs + o.more_epochs
    tests = {"dataloaders": loader(Numbers(6), 2)}
    then = o.then
    if then in ("validate", "validate elsewhere"):
        other = t if then == "validate" else trainer_of(own, own_callback, "evaluated")
        observe("validated", other.validate(model, **data_for(model, False), verbose=False))
    elif then in ("test", "predict"):
        observe(then, getattr(t, then)(model, **tests))
    elif then == "fit on":
        t.fit_loop.max_epochs = epochs
        t.fit(model, **data_for(model))
    elif then == "fit again":
        t = trainer_of(own, own_callback, "again")
        t.fit(model, **data_for(model))
    paths = sorted(glob.glob("**/*.ckpt", recursive=True))
    if then == "load":
        for path in paths:
            loaded = attempt(lambda path=path: model_class.load_from_checkpoint(path, map_location="cpu"))
            observe(path, [loaded, str(getattr(loaded, "hparams", None))])
    elif then in ("resume each", "resume last", "resume there"):
        last = sorted(paths, key=lambda path: (os.path.getmtime(path), path))[-1:]
        for path in paths if then == "resume each" else last:
            observe("from", path)
            place = "run" if then == "resume there" else f"resumed/{path.replace('/', '_')}"
            t = trainer_of(own, own_callback, place, max_epochs=epochs)
            model = model_class(**arguments)
            attempt(lambda path=path, t=t, model=model: t.fit(model, **data_for(model), ckpt_path=path))
    tell(t, model)


def tune(own: Any, t: Any, model: Any) -> None:
    tuner = own(module("pytorch.tuner").Tuner, t)
    if o.lr_finder == "tuner":
        found = tuner.lr_find(model, **data_for(model), num_training=20)
        observe("lr_find", found and [found.results, found.suggestion(), model.lr])
    mode, by = o.batch_size_finder, o.by
    if mode in ("power", "binsearch") and by != "arguments":
        found = tuner.scale_batch_size(model, **data_for(model), mode=mode, max_trials=2, steps_per_trial=1)
        observe("batch size", found)


def tell(t: Any, model: Any) -> None:
    status = [t.global_step, t.current_epoch, str(t.state.status), shown(dict(t.callback_metrics))]
    observe("fitted", [*status, weights(getattr(model, "_orig_mod", model))])
    best = t.checkpoint_callback
    if best is not None:
        observe("best", [best.best_model_path, best.best_model_score])
