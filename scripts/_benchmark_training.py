"""Measure the time of a training step on stock and with the patches."""

from __future__ import annotations

import argparse
import functools
import gc
import json
import math
import statistics
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[1]
Rows = list[dict[str, Any]]
PROGRAMS = ("0 logs", "1 log", "10 logs", "50 logs", "fabric", "accelerate", "teacher", "checkpoints")
BLOCK, SKIPPED = 800, 400
"""Steps of a block, and those before its clock starts: multiples of 20, after which a checkpoint is saved."""


def median(values: list[float]) -> dict[str, float]:
    """The median, and the interval that contains it in 19 of 20 runs, by the binomial distribution."""
    ordered, middle, width = sorted(values), len(values) // 2, math.ceil(math.sqrt(len(values)))
    bounds = {", from": ordered[max(middle - width, 0)], ", to": ordered[min(middle + width, len(values) - 1)]}
    return {"": statistics.median(values), **bounds}


def measured(release: str, *arguments: str) -> dict[str, Any]:
    """Run ``scripts/benchmark programs --in-variant ARGUMENTS`` with a release, and return what it observed."""
    from tests.support import variants
    from tests.support.run import execute

    variant = variants.Variant(variants.distribution_of(release), release, shim=True)
    with tempfile.TemporaryDirectory() as out:
        variables = {**variants.environment_of(variant), "SCENARIO_OUT": out, "SCENARIO_SHIM": "1"}
        command = [sys.executable, str(ROOT / "scripts" / "benchmark"), "programs", "--in-variant", *arguments]
        status, output = execute(command, variables, 600, cwd=out)
        if status:
            sys.exit(f"{variant} ended with status {status}:\n{output[-3000:]}")
        observed: dict[str, Any] = json.loads((Path(out) / "rank0.json").read_text())
        return observed


def number(value: Any) -> float:
    """A number as it was observed: a float is a hexadecimal string."""
    return float.fromhex(value) if isinstance(value, str) else float(value)


def scenario() -> Any:
    """Import the module of the scenarios, in the process of a variant."""
    sys.path.insert(0, str(ROOT / "tests" / "scenarios"))
    import _scenario

    return _scenario


def batches(count: int) -> Any:
    """A loader of so many rows, in batches of 4."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    return DataLoader(TensorDataset(torch.ones(count, 8)), batch_size=4)


def linear(variant: Any) -> Any:
    """A LightningModule class with one linear layer."""
    import torch

    class Linear(variant.pytorch().LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.layer(batch[0]).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    return Linear


def programs(options: argparse.Namespace) -> Rows:
    """Measure the CPU time of a training step with and without the patches, and relative to plain PyTorch.

        scripts/benchmark programs
        scripts/benchmark programs --blocks 400 --releases 2.6.6 --programs fabric accelerate

    A linear layer, batches of 4. "logs" are calls of self.log in training_step; "teacher" trains a student on the
    output of a frozen module; "checkpoints" saves one every 20 steps; "fabric" and "accelerate" are the program
    without logs on these.

    One process runs a program. Every 800 steps the patches are removed or applied again. The clock starts 400 steps
    later, since the first steps after a switch are slower. A block of the plain loop precedes each pair of blocks. Each
    ratio compares the two blocks of a pair. The table has the median, and its 95 % interval as "from" and "to". Patches
    of the set-up phase are applied in both blocks.
    """
    rows = []
    for release in options.releases:
        for program in options.programs:
            arguments = ("--blocks", str(options.blocks), "--programs", program)
            found = measured(release, *arguments)["microseconds"]
            plain, shim, stock = ([number(value) for value in found[what]] for what in ("plain", "shim", "stock"))
            ratio = median([patched / unpatched for patched, unpatched in zip(shim, stock)])
            times = {"plain us": plain, "stock us": stock, "shim us": shim}
            rows.append(
                {
                    "program": program,
                    "release": release,
                    **{name: statistics.median(values) for name, values in times.items()},
                    **{f"shim/stock{name}": value for name, value in ratio.items()},
                }
            )
    return rows


class Clock:
    """Reads the time twice in a block: on some machines, reading it costs as much as a step."""

    def __init__(self) -> None:
        self.steps, self.begun = 0, 0.0

    def step(self) -> None:
        if self.steps % BLOCK == SKIPPED:
            self.begun = time.process_time()
        self.steps += 1

    def spent(self) -> float:
        """Microseconds per step."""
        return 1e6 * (time.process_time() - self.begun) / (BLOCK - SKIPPED)


class Switch(Clock):
    """Runs one block with the patches, the next without, and a block of the plain loop before each pair."""

    def __init__(self, plain: Callable[[], float]) -> None:
        super().__init__()
        self.active = False
        self.plain = plain
        self.times: dict[str, list[float]] = {"plain": [], "shim": [], "stock": []}

    def step(self) -> None:
        import lightning_patches

        if self.steps % BLOCK == 0:
            if self.steps:
                self.times["shim" if self.active else "stock"].append(self.spent())
            if self.active:
                assert not lightning_patches.deactivate()
            else:
                self.times["plain"].append(self.plain())
                lightning_patches.activate("default,quiet")
            self.active = not self.active
            gc.collect()  # collects garbage of the step before
        super().step()


def time_in_variant(options: argparse.Namespace) -> None:
    """Time a program, block by block."""
    variant = scenario()
    import torch

    pl, Fabric = variant.pytorch(), variant.fabric().Fabric  # noqa: N806
    data = batches(4 * (2 * options.blocks + 1) * BLOCK)

    class Model(linear(variant)):  # type: ignore[misc]
        def __init__(self, logs: int = 0, teacher: bool = False) -> None:
            super().__init__()
            self.teacher = torch.nn.Linear(8, 1).requires_grad_(False).eval() if teacher else None
            self.names = [f"metric_{number}" for number in range(logs)]

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            clock.step()
            aim = 0 if self.teacher is None else self.teacher(batch[0])
            loss = (self.layer(batch[0]) - aim).mean()
            for name in self.names:
                self.log(name, loss)
            return loss

    def train(saves: bool = False, **options: Any) -> None:
        every = [pl.callbacks.ModelCheckpoint(every_n_train_steps=20, save_top_k=-1)] if saves else []
        trainer = variant.trainer(max_epochs=1, accelerator="cpu", callbacks=every, enable_checkpointing=saves)
        trainer.fit(Model(**options), data)

    def loop(clock: Clock, steps: Any, prepare: Callable[..., Any], backward: Callable[[Any], None]) -> float:
        layer = torch.nn.Linear(8, 1)
        layer, optimizer, loader = prepare(layer, torch.optim.SGD(layer.parameters(), lr=0.01), data)
        for batch in islice(loader, steps):
            clock.step()
            loss = layer(batch[0]).mean()
            optimizer.zero_grad()
            backward(loss)
            optimizer.step()
        return clock.spent()

    clock = Switch(lambda: loop(Clock(), BLOCK, lambda *given: given, lambda loss: loss.backward()))

    def fabric() -> None:
        used = Fabric(accelerator="cpu", devices=1)
        setup = lambda *given: (*used.setup(*given[:2]), used.setup_dataloaders(given[2]))  # noqa: E731
        loop(clock, None, setup, used.backward)

    def accelerate() -> None:
        from accelerate import Accelerator

        used = Accelerator(cpu=True)
        loop(clock, None, used.prepare, used.backward)

    kinds: dict[str, Callable[[], Any]] = {
        **{f"{logs} log{'s' * (logs != 1)}": functools.partial(train, logs=logs) for logs in (0, 1, 10, 50)},
        "teacher": functools.partial(train, teacher=True),
        "checkpoints": functools.partial(train, saves=True),
        "fabric": fabric,
        "accelerate": accelerate,
    }
    kinds[options.programs[0]]()
    variant.observe(microseconds=clock.times)
