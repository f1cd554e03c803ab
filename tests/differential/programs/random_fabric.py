"""A random program for Fabric, with random values for `OPTIONS`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable, Sized
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, Callable

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, TensorDataset

from tests.differential.observing import Log, Options, begin, fabric, module, note, observe, pl, tensors_of, weights
from tests.differential.programs.random_trainer import OPTIMIZERS

# fmt: off
OPTIONS: dict[str, tuple[Any, ...]] = {
    "strategy": (None, "popen", "fork"), "unused": (False, "found", "not"), "static_graph": (False, True),
    "model": ("plain", "dict", "list", "sequential", "compiled", "frozen", "batch_norm"), "lightning_module": (0, 1),
    "setup": ("together", "apart", "module only", "parts", "no move"), "made": (None, "init_module", "decorator"),
    "call": ("forward", "parts", "module", "before", "method", "marked", "twice", "functional"),
    "optimizer": tuple(OPTIMIZERS), "loss": ("backward", "plain", "autograd.grad"),
    "steps": (3, 1, 2, 4), "accumulate": (1, 2, 3), "no_sync": (False, True), "clip": (None, "norm", "value"),
    "precision": ("32-true", "bf16-mixed", "64-true", "bf16-true"), "checkpointed": (False, True),
    "data": (None, "loader", "shuffled", "own sampler", "iterable", "own batches", "workers"), "retain": (False, True),
    "save": (None, "plain", "filtered", "objects"), "load": ("plain", "not strict", "raw", "new model", "nothing"),
    "scheduler": (False, True),
    "rank_only": (None, "backward", "evaluation"),
    "looks": (None, "iterable", "attributes", "state", "copy", "pickle", "names", "hooks", "set"),
    "callbacks": (False, True), "logger": (None, "csv", "own"), "seed": (None, 7), "no_grad": (False, True),
    "raises": (None, RuntimeError, KeyboardInterrupt), "logs": (False, True),
}
LIKELY = {"strategy": 2, "model": 3, "call": 3, "save": 2, "looks": 2, "raises": 0.5}
# fmt: on
o: Options


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body: nn.Module = nn.Linear(8, 8)
        if o.model == "batch_norm":
            self.body = nn.Sequential(self.body, nn.BatchNorm1d(8))
        self.body.requires_grad_(o.model != "frozen")
        self.head = nn.Linear(8, 1)
        if o.unused:
            self.spare = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = checkpoint(self.body, x, use_reentrant=False) if o.checkpointed else self.body(x)
        return self.head(torch.relu(hidden))

    def score(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.body(x))) * 2


class Module(Net, pl.LightningModule):
    """The same as a LightningModule."""


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(numbers(3))


class Told:
    def on_step(self, step: int) -> None:
        note("call", f"on_step {step}")


def numbers(seed: int, length: int = 12) -> TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    return TensorDataset(*(torch.randn(length, width, generator=generator) for width in (8, 1)))


def built() -> Any:
    body, head = nn.Linear(8, 8), nn.Linear(8, 1)
    made: dict[str, Callable[[], Any]] = {
        "dict": lambda: nn.ModuleDict({"body": body, "head": head}),
        "list": lambda: nn.ModuleList([body, head]),
        "sequential": lambda: nn.Sequential(body, nn.ReLU(), head),
        "compiled": lambda: torch.compile(Net(), backend="eager"),
    }
    return made.get(o.model, Module if o.lightning_module else Net)()


def batches(fab: Any, dtype: Any) -> Any:
    if o.data is None:
        return [[t.to(dtype) for t in numbers(10 * fab.global_rank + n, 4).tensors] for n in range(o.steps)]
    more: dict[str, Any] = {
        "shuffled": {"shuffle": True},
        "own sampler": {"sampler": SequentialSampler(range(12))},
        "workers": {"num_workers": 1},
    }.get(o.data, {})
    loader = DataLoader(Stream() if o.data == "iterable" else numbers(3), batch_size=2, **more)
    if o.data == "own batches":
        loader = DataLoader(numbers(3), batch_sampler=BatchSampler(SequentialSampler(range(12)), 2, False))
    return [[t.to(dtype) for t in batch] for batch in fab.setup_dataloaders(loader)][: o.steps]


def said(model: Any, net: Any, x: torch.Tensor) -> torch.Tensor:
    """Call the model in the way that the options choose, and return the output for ``x``."""
    if o.model in ("dict", "list"):
        owner = {"module": model.module, "parts": model}.get(o.call, net)
        body, head = owner.values() if o.model == "dict" else owner
        return head(torch.relu(body(x)))
    calls: dict[str, Callable[[], Any]] = {
        "module": lambda: model.module(x),
        "before": lambda: net(x),
        "parts": lambda: model.head(torch.relu(model.body(x))),
        "method": lambda: model.score(x),
        "marked": lambda: model.score(x),
        "twice": lambda: model(x) + model(x * 2),
        "functional": lambda: torch.func.functional_call(model.module, dict(model.module.named_parameters()), (x,)),
    }
    return calls.get(o.call, lambda: model(x))()


def optimizer_of(parameters: Any) -> Any:
    cls, more = OPTIMIZERS[o.optimizer]
    return cls([p for p in parameters if p.requires_grad], lr=0.1, **more)


def random_fabric(observe: Any, own: Any, seed: int) -> None:
    """A loop with random options."""
    global o
    o = Options(seed, OPTIONS, LIKELY)
    loggers = {"csv": lambda: [own(module("fabric.loggers").CSVLogger, "logs")], "own": lambda: [Log()], None: list}
    given: dict[str, Any] = {"loggers": loggers[o.logger](), "callbacks": [own(Told)] if o.callbacks else []}
    if o.strategy:
        flags = {"find_unused_parameters": True} if o.unused == "found" else {}
        flags |= {"static_graph": True} if o.static_graph else {}
        strategy = module("fabric.strategies").DDPStrategy
        given["strategy"] = own(strategy, start_method=o.strategy, timeout=timedelta(seconds=45), **flags)
    made = own(fabric.Fabric, accelerator="cpu", devices=2 if o.strategy else 1, precision=o.precision, **given)
    if o.strategy == "fork":
        made.launch(ranked)
    else:
        made.launch()
        loop(made)


def ranked(fab: Any) -> None:
    begin()
    loop(fab)


def prepared(fab: Any) -> tuple[Any, Any, Any]:
    """Return the model as Fabric has set it up, the module and the optimizer."""
    with fab.init_module() if o.made == "init_module" else nullcontext():
        net = fab.init_module()(built)() if o.made == "decorator" else built()
    optimizer = optimizer_of(net.parameters())
    if o.setup in ("apart", "parts"):
        if o.setup == "parts" and o.model in ("plain", "batch_norm"):
            net.body, net.head = fab.setup_module(net.body), fab.setup_module(net.head)
        model, optimizer = fab.setup_module(net), fab.setup_optimizers(optimizer)
    elif o.setup == "module only":
        model = fab.setup(net)
    else:
        model, optimizer = fab.setup(net, optimizer, move_to_device=o.setup != "no move")
    if o.call == "marked" and hasattr(net, "score") and hasattr(model, "mark_forward_method"):
        model.mark_forward_method("score")
    return model, net, optimizer


def loop(fab: Any) -> None:
    if o.seed:
        fab.seed_everything(o.seed, workers=True)
    model, net, optimizer = prepared(fab)
    look(model, net)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5) if o.scheduler else None
    dtype = {"64-true": torch.float64, "bf16-true": torch.bfloat16}.get(o.precision, torch.float32)
    for n, (x, y) in enumerate(batches(fab, dtype)):
        if o.raises and n == 1:
            raise o.raises("on purpose")
        step(fab, model, net, optimizer, x, y, n)
        if scheduler is not None:
            scheduler.step()
        note("state", f"step {n} weights {weights(net)}")
        if o.rank_only and fab.is_global_zero and o.model not in ("dict", "list"):
            found = model.module(x[:2]).sum()
            observe("alone", found)
            if o.rank_only == "backward":
                found.backward()
        if o.no_grad:
            with torch.no_grad():
                observe("without gradient", said(model, net, x))
        fab.call("on_step", step=n)
        fab.log("loss", float(n), step=n)
        if o.lightning_module and o.logs:
            model.log("step", n)
    save(fab, model, optimizer)


def step(fab: Any, model: Any, net: Any, optimizer: Any, x: Any, y: Any, n: int) -> None:
    def backward() -> torch.Tensor:
        loss = nn.functional.mse_loss(said(model, net, x).to(y.dtype), y)
        if o.loss == "autograd.grad":
            trained = [p for p in net.parameters() if p.requires_grad]
            for p, gradient in zip(trained, torch.autograd.grad(loss, trained, allow_unused=True)):
                p.grad = gradient
        elif o.loss == "plain":
            loss.backward(retain_graph=o.retain)
        else:
            fab.backward(loss, retain_graph=o.retain)
        if o.retain:
            (loss * 2).backward()
        return loss

    if o.optimizer == "lbfgs":
        observe("loss", optimizer.step(backward))
        return
    last = (n + 1) % o.accumulate == 0
    with fab.no_backward_sync(model, enabled=not last) if o.no_sync else nullcontext():
        observe("loss", backward())
    observe("gradients", [p.grad for p in tensors_of(net) if isinstance(p, nn.Parameter)])
    if last:
        if o.clip:
            limit = {"max_norm": 0.1} if o.clip == "norm" else {"clip_val": 0.01}
            observe("norm", fab.clip_gradients(model, optimizer, **limit))
        optimizer.step()
        optimizer.zero_grad()


def look(model: Any, net: Any) -> None:
    """Read attributes of the wrapper that a program may use."""

    asked: dict[str, list[Callable[[], Any]]] = {
        "iterable": [
            lambda: [isinstance(model, kind) for kind in (Iterable, Sized, nn.Module)],
            lambda: [hasattr(model, name) for name in ("__getitem__", "__iter__", "__len__", "__contains__", "no")],
            *(lambda ask=ask: ask(model) for ask in (list, len, lambda m: m[0], lambda m: "body" in m, lambda m: m.no)),
        ],
        "attributes": [
            lambda: [model.module is net, *(getattr(model, n, None) is child for n, child in net.named_children())],
            lambda: [type(getattr(model, n)).__name__ for n, _ in net.named_children()],
            lambda: [model.training, model.eval().training, model.train().training],
        ],
        "state": [lambda: dict(model.state_dict()), lambda: str(model.load_state_dict(model.state_dict()))],
        "copy": [lambda: [len(part._forward_hooks) for part in copy.deepcopy(model.module).modules()]],
        "pickle": [lambda: type(pickle.loads(pickle.dumps(model.module))).__name__],
        "names": [
            lambda: [[n for n, _ in net.named_parameters()], [n for n, _ in model.named_modules()], repr(model)],
            lambda: sorted(name for name in dir(model) if not name.startswith("_")),
        ],
        "hooks": [lambda: str(model.register_forward_hook(lambda m, *_: observe("hook", type(m).__name__)) and 1)],
        "set": [lambda: setattr(model, "mark", 3), lambda: [model.mark, getattr(model.module, "mark", None)]],
    }
    for number, ask in enumerate(asked.get(o.looks, [])):
        try:
            observe(f"{o.looks} {number}", ask())
        except Exception as error:
            observe(f"{o.looks} {number} raises", error)


def save(fab: Any, model: Any, optimizer: Any) -> None:
    if not o.save:
        return
    state = {"model": model, "step": 3} | ({"optimizer": optimizer} if o.setup != "module only" else {})
    state |= {"names": ["a", "b"]} if o.save == "objects" else {}
    more = {"filter": {"model": lambda name, value: "bias" not in name}} if o.save == "filtered" else {}
    strict = {"strict": False} if o.save == "filtered" or o.load == "not strict" else {}
    fab.save("saved.ckpt", state, **more)
    if o.load in ("plain", "not strict"):
        observe("left", fab.load("saved.ckpt", {"model": model, "step": 0}, **strict))
    elif o.load == "raw":
        path = f"raw{fab.global_rank}.pt"
        torch.save(model.module.state_dict(), path)
        fab.load_raw(path, model)
    elif o.load == "new model":
        other = fab.setup_module(built())
        observe("left", sorted(fab.load("saved.ckpt", {"model": other}, **strict)))
        observe("loaded", list(tensors_of(other)))
