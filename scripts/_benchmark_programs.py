"""Measure the CPU time of a step of whole programs with and without the patches, and relative to plain PyTorch.

    scripts/benchmark programs
    scripts/benchmark programs --blocks 400 --releases 2.6.6 --programs fabric accelerate

A linear layer, batches of 4. "logs" are calls of self.log in training_step; "teacher" trains a student on the output of
a frozen module; "checkpoints" saves one every 20 steps; "fabric" and "accelerate" are the program without logs on
these.

One process runs a program. Every 800 steps the patches are removed or applied again. The clock starts 400 steps later,
since the first steps after a switch are slower. A block of the plain loop precedes each pair of blocks. Each ratio
compares the two blocks of a pair. The table has the median, and its 95 % interval as "from" and "to". Patches of the
set-up phase are applied in both blocks.
"""

from __future__ import annotations

import argparse
import functools
import gc
import statistics
import time
from itertools import islice
from typing import Any, Callable

from _benchmark_variants import median, number, observed, scenario

Rows = list[dict[str, Any]]
PROGRAMS = ("0 logs", "1 log", "10 logs", "50 logs", "fabric", "accelerate", "teacher", "checkpoints")
RELEASES = ("2.0.0", "2.2.5", "2.3.3", "2.6.6")
BLOCK, SKIPPED = 800, 400
"""Steps of a block, and those before its clock starts: both whole rounds of checkpoints."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--releases", nargs="+", default=RELEASES)
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, choices=PROGRAMS)
    parser.add_argument("--blocks", type=int, default=100, help="pairs of blocks of a program (default: %(default)s)")
    parser.add_argument("--in-variant", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> Rows:
    if options.in_variant:
        measure(options.programs[0], options.blocks)
        return []

    from tests.differential.trial import distribution
    from tests.support.variants import Variant

    rows = []
    for release in options.releases:
        for program in options.programs:
            variant = Variant(distribution(release), release, shim=True)
            arguments = ("--blocks", str(options.blocks), "--programs", program)
            found = observed("programs", variant, *arguments)["microseconds"]
            plain, shim, stock = ([number(value) for value in found[what]] for what in ("plain", "shim", "stock"))
            whole = [patched / bare for patched, bare in zip(shim, stock)]
            times = {"plain us": plain, "stock us": stock, "shim us": shim}
            rows.append(
                {
                    "program": program,
                    "release": release,
                    **{name: statistics.median(values) for name, values in times.items()},
                    **{f"shim/stock{name}": value for name, value in median(whole).items()},
                }
            )
    return rows


def measure(name: str, blocks: int) -> None:
    """In a variant: time a program, block by block."""
    variant = scenario()
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    import lightning_patches

    pl, Fabric = variant.pytorch(), variant.fabric().Fabric  # noqa: N806
    data = DataLoader(TensorDataset(torch.ones(4 * (2 * blocks + 1) * BLOCK, 8)), batch_size=4)
    spent: dict[str, list[float]] = {"plain": [], "shim": [], "stock": []}

    class Clock:
        """Is read twice in a block: to read it costs as much as a step, on some machines."""

        def __init__(self) -> None:
            self.steps, self.begun = 0, 0.0

        def step(self) -> None:
            if self.steps % BLOCK == SKIPPED:
                self.begun = time.process_time()
            self.steps += 1

        def spent(self) -> float:
            """Microseconds a step."""
            return 1e6 * (time.process_time() - self.begun) / (BLOCK - SKIPPED)

    class Switch(Clock):
        """Has one block with the patches and the next without, and before each pair one of the plain loop."""

        def __init__(self) -> None:
            super().__init__()
            self.active = False

        def step(self) -> None:
            if self.steps % BLOCK == 0:
                if self.steps:
                    spent["shim" if self.active else "stock"].append(self.spent())
                if self.active:
                    assert not lightning_patches.deactivate()
                else:
                    spent["plain"].append(plain())
                    lightning_patches.activate("default,quiet")
                self.active = not self.active
                gc.collect()  # collects garbage of the step before
            super().step()

    class Model(pl.LightningModule):
        def __init__(self, logs: int = 0, teacher: bool = False) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)
            self.teacher = torch.nn.Linear(8, 1).requires_grad_(False).eval() if teacher else None
            self.names = [f"metric_{number}" for number in range(logs)]
            self.clock = Switch()

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.clock.step()
            aim = 0 if self.teacher is None else self.teacher(batch[0])
            loss = (self.layer(batch[0]) - aim).mean()
            for name in self.names:
                self.log(name, loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    def trained(saves: bool = False, **options: Any) -> None:
        every = [pl.callbacks.ModelCheckpoint(every_n_train_steps=20, save_top_k=-1)] if saves else []
        trainer = variant.trainer(max_epochs=1, accelerator="cpu", callbacks=every, enable_checkpointing=saves)
        trainer.fit(Model(**options), data)

    def loop(clock: Clock, steps: Any, prepare: Callable[..., Any], backward: Callable[[Any], None]) -> float:
        layer = torch.nn.Linear(8, 1)
        layer, optimizer, batches = prepare(layer, torch.optim.SGD(layer.parameters(), lr=0.01), data)
        for batch in islice(batches, steps):
            clock.step()
            loss = layer(batch[0]).mean()
            optimizer.zero_grad()
            backward(loss)
            optimizer.step()
        return clock.spent()

    def plain() -> float:
        return loop(Clock(), BLOCK, lambda *given: given, lambda loss: loss.backward())

    def fabric() -> None:
        used = Fabric(accelerator="cpu", devices=1)
        setup = lambda *given: (*used.setup(*given[:2]), used.setup_dataloaders(given[2]))  # noqa: E731
        loop(Switch(), None, setup, used.backward)

    def accelerate() -> None:
        from accelerate import Accelerator

        used = Accelerator(cpu=True)
        loop(Switch(), None, used.prepare, used.backward)

    kinds: dict[str, Callable[[], Any]] = {
        **{f"{logs} log{'s' * (logs != 1)}": functools.partial(trained, logs=logs) for logs in (0, 1, 10, 50)},
        "teacher": functools.partial(trained, teacher=True),
        "checkpoints": functools.partial(trained, saves=True),
        "fabric": fabric,
        "accelerate": accelerate,
    }
    kinds[name]()
    variant.observe(microseconds=spent)
