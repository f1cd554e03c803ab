"""Train random programs, and compare what they log with the values computed in plain Python.

Runs in a process with the Lightning and the patches of its variant (see ``resume.py``). A configuration is a seed, or a
range of seeds: ``7``, ``0-500``.
"""

from __future__ import annotations

import importlib
import json
import logging
import math
import os
import random
import sys
import warnings
from typing import Any

if os.environ.get("SCENARIO_SHIM") == "1":
    import lightning_patches  # noqa: F401

import torch
import torchmetrics
from torch.utils.data import DataLoader

IS_LIGHTNING = os.environ["SCENARIO_NAMESPACE"] == "lightning"
pl: Any = importlib.import_module("lightning.pytorch" if IS_LIGHTNING else "pytorch_lightning")
DummyLogger: Any = importlib.import_module(f"{pl.__name__}.loggers.logger").DummyLogger

OPTIONS = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False, "num_sanity_val_steps": 0}
TRAIN_HOOKS = ("before", "after", "on_train_batch_start", "on_train_batch_end", "on_before_optimizer_step")
VAL_HOOKS = ("validation_step", "on_validation_batch_end", "on_validation_epoch_end")
REDUCTIONS: dict[str, Any] = {"sum": sum, "max": max, "min": min}
Rows = list[tuple[int, dict[str, float]]]


class Key:
    """A logged value: in which hook and in which batches, how it is reduced, and what it is in each call."""

    def __init__(self, choose: random.Random, name: str, hooks: tuple[str, ...]) -> None:
        self.name, self.hook, self.salt = name, choose.choice(hooks), choose.random()
        self.on_step, self.on_epoch = choose.choice([(True, False), (False, True), (True, True)])
        if self.hook == "on_validation_epoch_end":
            self.on_step, self.on_epoch = False, True
        self.every = choose.choice([1, 1, 1, 2])
        self.reduce = choose.choice(["mean", "mean", "sum", "max", "min"])
        self.size = choose.choice([None, None, 3])
        self.form = choose.choice(["number", "tensor", "metric"])
        if self.form == "metric":
            self.reduce = "mean"

    def value(self, *place: int) -> float:
        return round(random.Random(f"{self.salt} {place}").uniform(-9, 9), 3)

    def names(self, suffix: str = "") -> tuple[str, str]:
        both = self.on_step and self.on_epoch
        return (f"{self.name}{'_step' * both}{suffix}", f"{self.name}{'_epoch' * both}{suffix}")

    def reduced(self, calls: list[tuple[float, int]]) -> float:
        if self.reduce != "mean":
            return float(REDUCTIONS[self.reduce](value for value, _ in calls))
        calls = [(value, 1) for value, _ in calls] if self.form == "metric" else calls
        return sum(value * size for value, size in calls) / sum(size for _, size in calls)


class Program:
    """A random program, and in ``expected`` the rows, metrics and results that it must log."""

    def __init__(self, seed: int) -> None:
        choose = self.choose = random.Random(seed)
        self.optimizers = choose.choice([0, 0, 1, 2])  # of manual optimization; 0: automatic
        self.epochs, self.size = choose.randint(1, 3), choose.randint(1, 3)
        self.items = choose.randint(2 * self.size, 6 * self.size)
        self.batches = self.sizes(self.items)
        count = len(self.batches)
        self.accumulate = 1 if self.optimizers else choose.choice([1, 1, 2, 3])
        self.every = choose.choice([1, 1, 2, 3])
        self.loaders = [choose.randint(1, 3 * self.size) for _ in range(choose.choice([0, 1, 1, 2]))]
        self.val_every = choose.choice([1, 1, 2]) if self.loaders else 1
        self.interval: Any = choose.choice([1.0, 1.0, 0.5, 2]) if self.loaders else 1.0
        self.stop = choose.randint(0, count) if not self.loaders and choose.random() < 0.4 else None
        self.keys = [Key(choose, f"t{i}", TRAIN_HOOKS) for i in range(choose.randint(1, 5))]
        hooks = VAL_HOOKS[: 3 if len(self.loaders) < 2 else 1]
        self.val_keys = [Key(choose, f"v{i}", hooks) for i in range(choose.randint(1, 3))] if self.loaders else []
        if len(self.loaders) > 1:  # a metric object is computed over all loaders
            for key in self.val_keys:
                key.form = "number"
        self.seen_batches = [0] * len(self.loaders)

    def sizes(self, items: int) -> list[int]:
        return [min(self.size, items - first) for first in range(0, items, self.size)]

    def times(self, key: Key, batch: int, steps: bool) -> int:
        """Return how often a value is logged in a batch."""
        if batch % key.every != key.every - 1:
            return 0
        return self.optimizers or int(steps) if key.hook == "on_before_optimizer_step" else 1

    def expected(self) -> tuple[Rows, list[dict[str, float]]]:
        """Return the rows of the logger, and callback_metrics at the end of each epoch."""
        rows: Rows = []
        ends, count, step = [], len(self.batches), 0
        due = {1.0: count, 0.5: max(1, count // 2)}.get(self.interval, self.interval)
        metrics: dict[str, float] = {}
        for epoch in range(self.epochs):
            calls: dict[str, list[tuple[float, int]]] = {}
            shown: dict[str, float] = {}
            for batch, size in enumerate(self.batches):
                steps = (batch + 1) % self.accumulate == 0 or batch + 1 == count
                for key in self.keys:
                    times = self.times(key, batch, steps)
                    if times:
                        value = key.value(epoch, batch)
                        calls.setdefault(key.name, []).extend([(value, key.size or size)] * times)
                        if key.on_step:
                            shown[key.names()[0]] = value
                if steps:
                    if shown and (step + 1) % self.every == 0:
                        rows.append((step, shown))
                    shown = {}
                if self.loaders and (epoch + 1) % self.val_every == 0 and (batch + 1) % due == 0:
                    self.validation(rows, metrics, epoch, batch, step)
                step += steps
            logged = [key for key in self.keys if key.on_epoch and key.name in calls]
            row = {key.names()[1]: key.reduced(calls[key.name]) for key in logged}
            metrics.update({**row, **{key.name: row[key.names()[1]] for key in logged}})
            rows += [(step - 1, row)] if row else []
            ends.append(dict(metrics))
        return rows, ends

    def validation(self, rows: Rows, metrics: dict[str, float], epoch: int, after: int, step: int) -> None:
        row: dict[str, float] = {}
        for loader, items in enumerate(self.loaders):
            suffix = f"/dataloader_idx_{loader}" if len(self.loaders) > 1 else ""
            calls: dict[str, list[tuple[float, int]]] = {}
            for batch, size in enumerate(self.sizes(items)):
                shown = {}
                for key in self.val_keys:
                    if key.hook != "on_validation_epoch_end" and batch % key.every == key.every - 1:
                        value = key.value(epoch, after, loader, batch)
                        calls.setdefault(key.name, []).append((value, key.size or size))
                        shown.update({key.names(suffix)[0]: value} if key.on_step else {})
                rows += [(self.seen_batches[loader], shown)] if shown else []
                self.seen_batches[loader] += 1
            for key in self.val_keys:
                if key.on_epoch and key.name in calls:
                    row[key.names(suffix)[1]] = metrics[key.name + suffix] = key.reduced(calls[key.name])
        for key in self.val_keys:
            if key.hook == "on_validation_epoch_end":
                row[key.name] = metrics[key.name] = key.value(epoch, after)
        metrics.update(row)
        rows += [(step, row)] if row else []


class Log(DummyLogger):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.rows: Rows = []

    def log_metrics(self, metrics: Any, step: int) -> None:
        row = {name: value for name, value in metrics.items() if name != "epoch"}
        self.rows += [(step, row)] if row else []


class Net(pl.LightningModule):  # type: ignore[misc,name-defined]
    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program, self.weight, self.ends = program, torch.nn.Parameter(torch.ones(1)), []
        self.metrics = torch.nn.ModuleDict({k.name: torchmetrics.MeanMetric() for k in program.keys + program.val_keys})
        self.automatic_optimization = not program.optimizers
        self.batch = 0

    def write(self, hook: str, *place: int) -> None:
        for key in self.program.keys + self.program.val_keys:
            if key.hook == hook and (hook == "on_validation_epoch_end" or place[-1] % key.every == key.every - 1):
                value: Any = key.value(self.current_epoch, *place)
                if key.form == "metric":
                    self.metrics[key.name](value)
                    value = self.metrics[key.name]
                elif key.form == "tensor":
                    value = torch.tensor(value)
                options = {"on_step": key.on_step, "on_epoch": key.on_epoch, "batch_size": key.size}
                self.log(key.name, value, reduce_fx=key.reduce, **options)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        self.batch = batch_idx
        self.write("on_train_batch_start", batch_idx)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.write("before", batch_idx)
        loss = (self.weight * batch).mean()
        optimizers = self.optimizers() if self.program.optimizers else []
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            optimizer.zero_grad()
            self.manual_backward((self.weight * batch).mean())
            optimizer.step()
        self.write("after", batch_idx)
        return loss

    def on_before_optimizer_step(self, *_: Any) -> None:
        self.write("on_before_optimizer_step", self.batch)

    def on_train_batch_end(self, *_: Any) -> None:
        self.write("on_train_batch_end", self.batch)
        self.trainer.should_stop |= self.batch == self.program.stop

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        self.write("validation_step", self.batch, dataloader_idx, batch_idx)

    def on_validation_batch_end(self, _: Any, __: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        self.write("on_validation_batch_end", self.batch, dataloader_idx, batch_idx)

    def on_validation_epoch_end(self) -> None:
        self.write("on_validation_epoch_end", self.batch)

    def configure_optimizers(self) -> Any:
        return [torch.optim.SGD(self.parameters(), 0.1) for _ in range(self.program.optimizers or 1)]


class Ends(pl.Callback):  # type: ignore[misc,name-defined]
    def on_train_epoch_end(self, trainer: Any, module: Net) -> None:
        module.ends.append({name: value.item() for name, value in trainer.callback_metrics.items()})


def run(seed: int) -> list[str]:
    """Return what differs from the values in plain Python."""
    program, log = Program(seed), Log()
    net = Net(program)
    options = {"max_epochs": program.epochs, "min_epochs": program.epochs, "log_every_n_steps": program.every}
    options.update(accumulate_grad_batches=program.accumulate, check_val_every_n_epoch=program.val_every)
    options.update(val_check_interval=program.interval, logger=log, callbacks=[Ends()], enable_checkpointing=False)
    trainer = pl.Trainer(**options, **OPTIONS)
    loaders = [DataLoader(torch.ones(items, 1), program.size) for items in (program.items, *program.loaders)]
    trainer.fit(net, loaders[0], loaders[1:] or None)
    rows, ends = program.expected()
    found = [f"row {one} -> {other}" for one, other in zip(rows, log.rows) if not equal(one, other)]
    found += [f"{len(rows)} rows -> {len(log.rows)}"] * (len(rows) != len(log.rows))
    seen = [{name: end.get(name, math.nan) for name in right} for right, end in zip(ends, net.ends)]
    return found + [f"metrics {one} -> {other}" for one, other in zip(ends, seen) if not equal((0, one), (0, other))]


def equal(one: tuple[int, dict[str, float]], other: tuple[int, dict[str, float]]) -> bool:
    return (one[0], one[1].keys()) == (other[0], other[1].keys()) and all(
        math.isclose(value, other[1][name], rel_tol=1e-4, abs_tol=1e-4) for name, value in one[1].items()
    )


def main() -> None:
    """Write what differs to a file. Arguments: the file, and seeds."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in ("lightning.pytorch", "pytorch_lightning", "lightning_patches"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    path, *chosen = sys.argv[1:]
    ends = [[int(end) for end in one.split("-")] for one in chosen or ["0-500"]]
    seeds = [seed for first, *end in ends for seed in range(first, *(end or [first + 1]))]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({str(seed): run(seed) for seed in seeds}, file)


if __name__ == "__main__":
    main()
