"""Run loops in plain PyTorch and in Fabric, and compare what they compute, bit for bit.

Runs in a process with the Lightning and the patches of its variant (see ``resume.py``), and in the process of rank one.
A configuration is a loop, ``AdamW; bf16-mixed; norm``, or a part, ``reductions; 32-true``.
"""

from __future__ import annotations

import itertools
import os
import sys
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from sampling import Fabric, main  # type: ignore[import-not-found]
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

RANK = int(os.environ.get("LOCAL_RANK", "0"))
TRUE = {"64-true": torch.float64, "bf16-true": torch.bfloat16}
PRECISIONS = ("32-true", "bf16-mixed", *TRUE)
OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda of: torch.optim.SGD(of, 0.1, momentum=0.9),
    "AdamW": lambda of: torch.optim.AdamW(of, 0.01),
    "LBFGS": lambda of: torch.optim.LBFGS(of, 0.1, max_iter=3),
}
EXTRAS = ("plain", "norm", "value", "accumulated", "scheduled", "saved")
X = torch.linspace(-1, 1, 24).reshape(6, 4)


class Plain(NamedTuple):
    """What a loop needs, in plain PyTorch, with the names of Fabric's methods."""

    precision: str
    devices: int

    def setup_module(self, module: Any) -> Any:
        module = module.to(TRUE.get(self.precision, torch.float32))
        return DistributedDataParallel(module) if self.devices > 1 else module

    def setup_optimizers(self, optimizer: Any) -> Any:
        return optimizer

    def setup_dataloaders(self, loader: Any) -> Any:
        return loader

    def compute(self, function: Any, x: Any, *args: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16-mixed"):
            return function(x.to(TRUE.get(self.precision, x.dtype)), *args)

    def backward(self, loss: Any) -> None:
        loss.backward()

    def clip_gradients(self, module: Any, optimizer: Any, clip_val: Any = None, max_norm: Any = None) -> Any:
        if clip_val is not None:
            return nn.utils.clip_grad_value_(module.parameters(), clip_val)
        return nn.utils.clip_grad_norm_(module.parameters(), max_norm)

    def no_backward_sync(self, module: Any, enabled: bool) -> Any:
        return module.no_sync() if enabled and self.devices > 1 else nullcontext()

    def save(self, path: str, state: Any) -> None:
        torch.save({name: one.state_dict() for name, one in state.items() if hasattr(one, "state_dict")}, path)

    def load(self, path: str, state: Any) -> None:
        for name, saved in torch.load(path, weights_only=False).items():
            state[name].load_state_dict(saved)

    def all_reduce(self, value: Any, reduce_op: str) -> Any:
        exact = value.double() if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=torch.float64)
        if self.devices > 1:
            distributed.all_reduce(exact, distributed.ReduceOp.MAX if reduce_op == "max" else distributed.ReduceOp.SUM)
        return exact / self.devices if reduce_op == "mean" else exact


class Net(nn.Sequential):
    def __init__(self, make: Any = None) -> None:
        torch.manual_seed(3)
        super().__init__(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
        self.make = make

    @property
    def dtype(self) -> Any:
        return self[0].weight.dtype

    def forward(self, x: Any, *args: Any) -> Any:
        return self.make(self, x, *args) if self.make else super().forward(x)

    def training_step(self, x: Any) -> Any:
        return super().forward(x)


def loop(tools: Any, made: str, extra: str) -> Any:
    net, losses = Net(), []
    model, optimizer = tools.setup_module(net), tools.setup_optimizers(OPTIMIZERS[made](net.parameters()))
    scheduler = torch.optim.lr_scheduler.StepLR(getattr(optimizer, "optimizer", optimizer), 1, 0.5)
    for step in range(4):
        is_whole = extra != "accumulated" or step % 2 == 1

        def closure(step: int = step, is_whole: bool = is_whole) -> Any:
            if extra != "accumulated" or not is_whole:
                optimizer.zero_grad()
            with tools.no_backward_sync(model, enabled=not is_whole):
                losses.append((tools.compute(model, X * (step + RANK + 1)).float() - 1).square().mean())
                tools.backward(losses[-1])
            return losses[-1]

        if made == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            limit = {"norm": {"max_norm": 0.1}, "value": {"clip_val": 0.05}}.get(extra)
            losses.append(tools.clip_gradients(model, optimizer, **limit) if limit else None)
            if is_whole:
                optimizer.step()
        if extra == "scheduled":
            scheduler.step()
        if extra == "saved" and step == 1:
            state = {"model": model, "optimizer": optimizer, "step": step, "inner": {"a": [1, X]}}
            saved_and_loaded(tools, state, list(model.parameters()))
            losses.append(state)
    return {"losses": losses[:-1], "weights": list(model.parameters()), "state": optimizer.state_dict()["state"]}


def saved_and_loaded(tools: Any, state: Any, weights: Any) -> Any:
    path = f"{sys.argv[1]}.{tools.devices}.{RANK if isinstance(tools, Plain) else 'fabric'}"
    tools.save(path, state)
    for weight in weights:
        weight.data.fill_(9)
    tools.load(path, state)
    return weights


def reductions(tools: Any) -> Any:
    found = {}
    for op, kind in itertools.product(("mean", "sum", "max"), (float, torch.tensor)):
        for name, value in {"int": RANK, "bool": RANK == 1, "large": 2_000_000_000, "float": 0.1}.items():
            given = value if kind is float else torch.tensor(value)
            found[f"{op} {name}"] = found.get(f"{op} {name}", []) + [float(tools.all_reduce(given, reduce_op=op))]
    return found


def modules(tools: Any) -> Any:
    def filled(net: Any, x: Any, into: Any) -> Any:
        into.append(x)
        return x.float().sum() + net[0].weight.sum() * 0

    nets, into, x = [Net(), Net()], [], X.clone().requires_grad_()
    one = tools.setup_optimizers(torch.optim.SGD([weight for net in nets for weight in net.parameters()], 0.1))
    models, gate = [tools.setup_module(net) for net in nets], tools.setup_module(Net(filled))
    tools.backward(sum(tools.compute(model, X).float().sum() for model in models))
    front = nets if isinstance(tools, Plain) else models
    return {
        "norm": tools.clip_gradients(models[0], one, max_norm=0.1),
        "gradients": [weight.grad.clone() for net in nets for weight in net.parameters()],
        "inputs": tools.compute(gate, X * 1.001, into),
        "filled": len(into),
        "penalty": attempt(lambda: torch.autograd.grad(tools.compute(models[0], x).float().sum(), x)),
        "dtype": str(front[0].dtype),
        "step": attempt(lambda: tools.compute(front[0].training_step, X).float()),
    }


def stored(tools: Any) -> Any:
    models = [tools.setup_module(Net()) for _ in range(2)]
    weights = [weight for model in models for weight in model.parameters()]
    return weights if isinstance(tools, Plain) else saved_and_loaded(tools, {"a": models}, weights)


def loaders(tools: Any) -> Any:
    found = {}
    for name, epochs in {"counted": (0, 1, 2), "resumed": (3, 4)}.items():
        sampler = DistributedSampler(range(12), tools.devices, RANK)
        loader = tools.setup_dataloaders(DataLoader(range(12), 3, sampler=sampler))
        found[name] = [[batch.tolist() for batch in loader] for epoch in epochs if not sampler.set_epoch(epoch)]
    return found


PARTS: dict[str, Any] = {"reductions": reductions, "modules": modules, "stored": stored, "loaders": loaders}


def names() -> list[str]:
    loops = itertools.product(OPTIMIZERS, PRECISIONS, EXTRAS)
    return ["; ".join(one) for one in (*loops, *itertools.product(PARTS, PRECISIONS))]


def exact(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: exact(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [exact(one) for one in value]
    if hasattr(value, "state_dict"):
        return exact(list(value.state_dict().values()))
    return [float(one).hex() for one in value.detach().flatten()] if isinstance(value, torch.Tensor) else value


def run(name: str, devices: int) -> Any:
    """Return what differs: the names of values, or an error."""
    kind, precision, *extra = name.split("; ")
    fabric = Fabric(accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto", precision=precision)
    fabric.launch()
    fabric.devices, fabric.compute = devices, lambda function, *args: function(*args)
    part, args = (PARTS[kind], ()) if kind in PARTS else (loop, (kind, *extra))
    plain, other = (exact(attempt(part, tools, *args)) for tools in (Plain(precision, devices), fabric))
    if isinstance(plain, dict) and isinstance(other, dict):
        return sorted(key for key in plain if plain[key] != other[key])
    return [] if plain == other else [other if isinstance(other, str) else "values"]


def attempt(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]


if __name__ == "__main__":
    main(run, names)
