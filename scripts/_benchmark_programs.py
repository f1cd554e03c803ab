"""The processor time of a step of whole programs, and what the Trainer adds to plain PyTorch, in arms that take turns.

    scripts/benchmark programs
    scripts/benchmark programs --rounds 7 --steps 1000 --releases 2.6.6

A linear layer, batches of 4. "logs" are calls of self.log in training_step; "teacher" trains a student on what a frozen
module gives; "checkpoints" saves one every 20 steps; "fabric" and "accelerate" are the program without logs on these.
The plain loop runs in the same process before and after each program, and the better of the two is taken off: what is
left is the program's own time. The ratio is that of the own times with and without the patches in one round; the table
has the median over the rounds, the least and the greatest.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any, Callable

from _benchmark_arms import number, observed, scenario, spread

Rows = list[dict[str, Any]]
PROGRAMS = ("0 logs", "1 log", "10 logs", "50 logs", "fabric", "accelerate", "teacher", "checkpoints")
RELEASES = ("2.0.0", "2.2.5", "2.3.3", "2.6.6")
SKIPPED = 50
"""Steps before the clock starts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--releases", nargs="+", default=RELEASES)
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, choices=PROGRAMS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400, help="timed steps of a program (default: %(default)s)")
    parser.add_argument("--in-arm", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> Rows:
    if options.in_arm:
        measure(options.programs, options.steps)
        return []

    from tests.healthy.trial import distribution
    from tests.support.arms import Arm

    arguments = ("--steps", str(options.steps), "--programs", *options.programs)
    times: dict[tuple[str, bool], list[dict[str, list[float]]]] = {}
    for _ in range(options.rounds):
        for release in options.releases:
            for shim in (False, True):
                found = observed("programs", Arm(distribution(release), release, shim=shim), *arguments)["microseconds"]
                seen = {program: [number(part) for part in parts] for program, parts in found.items()}
                times.setdefault((release, shim), []).append(seen)
    rows = []
    for release in options.releases:
        for program in options.programs:
            stock, shim = ([seen[program] for seen in times[release, which]] for which in (False, True))
            ratios = [patched[0] / own[0] for own, patched in zip(stock, shim)]
            rows.append(
                {
                    "program": program,
                    "release": release,
                    "plain us": statistics.median(part[1] for part in stock),
                    "own us, stock": statistics.median(part[0] for part in stock),
                    "own us, shim": statistics.median(part[0] for part in shim),
                    **{f"shim/stock, {name}": value for name, value in spread(ratios).items()},
                }
            )
    return rows


def measure(programs: list[str], steps: int) -> None:
    """In an arm: time each program, and the plain loop around it."""
    arm = scenario()
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    pl, Fabric = arm.pytorch(), arm.fabric().Fabric  # noqa: N806
    data = DataLoader(TensorDataset(torch.ones(4 * (SKIPPED + steps), 8)), batch_size=4)

    class Clock:
        """Is read twice in a program: to read it costs as much as a step, on some machines."""

        def __init__(self) -> None:
            self.steps, self.begun = 0, 0.0

        def step(self) -> None:
            self.steps += 1
            if self.steps == SKIPPED:
                self.begun = time.process_time()

        def spent(self) -> float:
            """Microseconds a step."""
            return 1e6 * (time.process_time() - self.begun) / (self.steps - SKIPPED)

    class Model(pl.LightningModule):
        def __init__(self, logs: int = 0, teacher: bool = False) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)
            self.teacher = torch.nn.Linear(8, 1).requires_grad_(False).eval() if teacher else None
            self.names = [f"metric_{number}" for number in range(logs)]
            self.clock, self.spent = Clock(), 0.0

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.clock.step()
            aim = 0 if self.teacher is None else self.teacher(batch[0])
            loss = (self.layer(batch[0]) - aim).mean()
            for name in self.names:
                self.log(name, loss)
            return loss

        def on_train_epoch_end(self) -> None:
            self.spent = self.clock.spent()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    def trained(**options: Any) -> Callable[[], float]:
        def program() -> float:
            model = Model(**options)
            arm.trainer(max_epochs=1, accelerator="cpu").fit(model, data)
            return model.spent

        return program

    def checkpoints() -> float:
        model = Model()
        saves = pl.callbacks.ModelCheckpoint(every_n_train_steps=20, save_top_k=-1)
        options = {"callbacks": [saves], "enable_checkpointing": True}
        arm.trainer(max_epochs=1, accelerator="cpu", **options).fit(model, data)
        return model.spent

    def loop(prepare: Callable[..., Any], backward: Callable[[Any], None]) -> float:
        layer = torch.nn.Linear(8, 1)
        layer, optimizer, batches = prepare(layer, torch.optim.SGD(layer.parameters(), lr=0.01), data)
        clock = Clock()
        for batch in batches:
            clock.step()
            loss = layer(batch[0]).mean()
            optimizer.zero_grad()
            backward(loss)
            optimizer.step()
        return clock.spent()

    def plain() -> float:
        return loop(lambda *given: given, lambda loss: loss.backward())

    def fabric() -> float:
        used = Fabric(accelerator="cpu", devices=1)
        return loop(lambda *given: (*used.setup(*given[:2]), used.setup_dataloaders(given[2])), used.backward)

    def accelerate() -> float:
        from accelerate import Accelerator

        used = Accelerator(cpu=True)
        return loop(used.prepare, used.backward)

    kinds = {f"{logs} log{'s' * (logs != 1)}": trained(logs=logs) for logs in (0, 1, 10, 50)}
    kinds.update(fabric=fabric, accelerate=accelerate, teacher=trained(teacher=True), checkpoints=checkpoints)
    plain()
    spent = {}
    for name in programs:
        before, whole, after = plain(), kinds[name](), plain()
        spent[name] = [whole - min(before, after), min(before, after)]
    arm.observe(microseconds=spent)
