"""Measure the cost of the patches at the start of Python, and at the import of Lightning."""

from __future__ import annotations

import argparse
import compileall
import math
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _releases

Rows = list[dict[str, Any]]
ROOT = Path(__file__).resolve().parents[1]
BUDGETS = {"asleep": 0.3, "armed": 2.0}
"""In milliseconds, on a machine where a bare Python starts in BARE milliseconds; scaled to the one at hand."""
BARE = 8.9
WITHOUT_DYNAMO = "import-without-dynamo"
IMPORT_BUDGETS = {"patched": 1.03, "patched by run": 1.03, WITHOUT_DYNAMO: 0.60, "LIGHTNING_PATCHES=0": 1.01}
"""Times Lightning's import."""
WORKERS_BUDGET = 0.70
"""Times the CPU time of stock from the start to the first batch of spawned workers, with import-without-dynamo."""
WORKERS = """
{patches}
import lightning.pytorch as pl
import torch

class Model(pl.LightningModule):
    def predict_step(self, batch, batch_idx):
        return batch

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(range(8), num_workers=4, multiprocessing_context="spawn")
    names = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    trainer = pl.Trainer(accelerator="cpu", limit_predict_batches=1, **dict.fromkeys(names, False))
    trainer.predict(Model(), loader)
"""
IMPORT = """
def below(depth):
    if depth:
        below(depth - 1)
    else:
        import {module}
below({depth})
"""


@dataclass(frozen=True)
class Cost:
    """Time of one process, in milliseconds, and its page faults."""

    wall: float
    cpu: float
    faults: int


def median(values: list[float]) -> dict[str, float]:
    """The median, and the interval that contains it in 19 of 20 runs, by the binomial distribution."""
    ordered, middle, width = sorted(values), len(values) // 2, math.ceil(math.sqrt(len(values)))
    bounds = {", from": ordered[max(middle - width, 0)], ", to": ordered[min(middle + width, len(values) - 1)]}
    return {"": statistics.median(values), **bounds}


def run(args: argparse.Namespace) -> Rows:
    """Measure the cost of the patches at the start of Python, and at the import of Lightning.

        scripts/benchmark startup                  # exit status 1 if something is over its budget
        scripts/benchmark startup --rounds 400 --imports 40
        scripts/benchmark startup --rounds 0 --imports 20 --releases 2.6.4 --depths 0 4
        scripts/benchmark startup --rounds 0 --imports 0 --workers 13       # the first batch of spawned workers

    Measures whole processes in pairs, in an environment with the package installed and compiled. For a start, the table
    has the median difference of a pair, for an import the median ratio, with 95 % intervals as "from" and "to". CPU
    time is user and system time. "asleep" is the autostart line with LIGHTNING_PATCHES unset, "armed" a Python with
    LIGHTNING_PATCHES set that never imports Lightning.

    The cost of an import depends on the depth of the stack below it: at some depths calls cross the end of a chunk of
    Python's stack, and each requests memory from the system. "page faults" show that, and vary less than times.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-") as directory:
        plain, enabled = Path(directory) / "plain", Path(directory) / "enabled"
        for environment in (plain, enabled):
            make(environment)
        subprocess.run(
            [str(enabled / "bin" / "python"), "-m", "lightning_patches", "autostart", "enable"],
            check=True,
            env=variables(),
            cwd=directory,
            stdout=subprocess.DEVNULL,
        )
        rows = starts(plain, enabled, args.rounds) if args.rounds else []
        for release in args.releases if args.imports else ():
            for depth in args.depths:
                rows += imports(plain, release, depth, args.imports)
        return rows + (spawned_workers(plain, args.releases[-1], args.workers) if args.workers else [])


def row(what: str, wall: float, cpu: float, of: float, budget: float) -> dict[str, Any]:
    """Return a row with the added milliseconds; ``of`` is the CPU time without the patches."""
    costs = {"adds ms": wall, "adds CPU ms": cpu, "% of it": 100 * cpu / of, "budget ms": budget}
    return {"what": what, **costs, **({"over": True} if cpu > budget else {})}


def make(environment: Path) -> None:
    """Make a virtual environment that contains the package and can import the torch of this Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], cwd=ROOT, check=True)
    site = next(environment.glob("lib/python*/site-packages"))
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "lightning_patches", site / "lightning_patches", ignore=ignored)
    outside = ROOT / "lightning_patches" / "activation" / "entry_points" / "_lightning_patches"
    shutil.copytree(outside, site / "_lightning_patches", ignore=ignored)
    outer = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    (site / "1_outer.pth").write_text("".join(f"{path}\n" for path in outer))
    compileall.compile_dir(site, quiet=1)


def variables(**more: str) -> dict[str, str]:
    dropped = ("PYTHON", "LIGHTNING_PATCHES", "_LIGHTNING_PATCHES")
    return {**{name: value for name, value in os.environ.items() if not name.startswith(dropped)}, **more}


def variables_of_run(environment: Path) -> dict[str, str]:
    """Return the variables that `lightning-patches run` sets for its program."""
    launcher = next(environment.glob("lib/python*/site-packages/lightning_patches/activation/launcher"))
    version = ".".join(map(str, sys.version_info[:2]))
    return {
        "LIGHTNING_PATCHES": "1",
        "PYTHONPATH": str(launcher),
        "_LIGHTNING_PATCHES_FOR": f"{version} {os.path.realpath(environment)}",
    }


def starts(plain: Path, enabled: Path, rounds: int) -> Rows:
    below_run = variables_of_run(plain)
    kinds: dict[str, tuple[Path, str, dict[str, str]]] = {
        "bare": (plain, "pass", {}),
        "asleep": (enabled, "pass", {}),
        "armed by autostart": (enabled, "pass", {"LIGHTNING_PATCHES": "1"}),
        "armed by run": (plain, "pass", below_run),
        "armed by import": (plain, "import lightning_patches", {}),
    }
    for environment, _, more in kinds.values():  # check that only the armed kinds have the finder
        found = "any(type(f).__name__ == '_Finder' for f in sys.meta_path)"
        command = [str(environment / "bin" / "python"), "-c", f"import sys; print({found})"]
        done = subprocess.run(command, env=variables(**more), cwd=plain, capture_output=True, text=True, check=True)
        armed = done.stdout
        assert armed.strip() == str("LIGHTNING_PATCHES" in more), (command, armed)
    costs: dict[str, list[Cost]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, (environment, code, more) in kinds.items():
            costs[kind].append(measure([str(environment / "bin" / "python"), "-c", code], variables(**more)))
    bare = costs.pop("bare")
    bare_cpu = statistics.median(cost.cpu for cost in bare)
    bare_wall = statistics.median(cost.wall for cost in bare)
    scale = bare_cpu / BARE
    rows: Rows = [{"what": f"start of a Python, medians of {rounds} pairs", "ms": bare_wall, "CPU ms": bare_cpu}]
    for kind, measured in costs.items():
        wall = statistics.median(cost.wall - other.wall for cost, other in zip(measured, bare))
        cpu = statistics.median(cost.cpu - other.cpu for cost, other in zip(measured, bare))
        rows.append(row(kind, wall, cpu, bare_cpu, BUDGETS[kind.split()[0]] * scale))
    return rows


def imports(environment: Path, release: str, depth: int, count: int) -> Rows:
    is_old = release.startswith("1.")  # `lightning` 1.9 also imports the App
    unpacked = str(_releases.unpacked("pytorch-lightning" if is_old else "lightning", release))
    module = "pytorch_lightning" if is_old else "lightning.pytorch"
    python, code = str(environment / "bin" / "python"), IMPORT.format(depth=depth, module=module)
    path = {"PYTHONPATH": unpacked, "PYTHONWARNINGS": "ignore"}
    run = variables_of_run(environment)
    run["PYTHONPATH"] += os.pathsep + unpacked
    kinds: dict[str, tuple[str, dict[str, str]]] = {
        "stock": (code, path),
        "patched": (f"import lightning_patches\n{code}", path),
        "patched by run": (code, {**path, **run}),
        "LIGHTNING_PATCHES=0": (f"import lightning_patches\n{code}", {**path, "LIGHTNING_PATCHES": "0"}),
    }
    if tuple(map(int, release.split("."))) >= (2, 3):
        toggle = {**path, "LIGHTNING_PATCHES": f"default,{WITHOUT_DYNAMO}"}
        kinds[WITHOUT_DYNAMO] = (f"import lightning_patches\n{code}", toggle)
    commands = {kind: ([python, "-c", program], variables(**more)) for kind, (program, more) in kinds.items()}
    return ratios(f"import {module} {release}", f", depth {depth}", commands, count, IMPORT_BUDGETS)


def spawned_workers(environment: Path, release: str, count: int) -> Rows:
    """Measure programs that end after the first batch of a loader with four spawned workers."""
    python, path = str(environment / "bin" / "python"), str(_releases.unpacked("lightning", release))
    given = variables(PYTHONPATH=path, PYTHONWARNINGS="ignore", LIGHTNING_PATCHES=f"default,{WITHOUT_DYNAMO}")
    commands = {}
    for kind, patches in {"stock": "", WITHOUT_DYNAMO: "import lightning_patches"}.items():
        program = environment / f"workers_{'patched' if patches else 'stock'}.py"
        program.write_text(WORKERS.format(patches=patches))
        commands[kind] = ([python, str(program)], given)
    return ratios(f"first batch of 4 workers {release}", "", commands, count, {WITHOUT_DYNAMO: WORKERS_BUDGET})


def ratios(
    what: str, how: str, commands: dict[str, tuple[list[str], dict[str, str]]], count: int, budgets: dict[str, float]
) -> Rows:
    """Run commands in turn, and return a row for each with the ratio of its CPU time to that of ``stock``."""
    kinds = list(commands)
    costs: dict[str, list[Cost]] = {kind: [] for kind in kinds}
    for number in range(-1, count):  # the first round fills the caches
        for kind in kinds if number % 2 else reversed(kinds):
            cost = measure(*commands[kind])
            if number >= 0:
                costs[kind].append(cost)
    rows: Rows = []
    for kind, measured in costs.items():
        found = median([cost.cpu / stock.cpu for cost, stock in zip(measured, costs["stock"])])
        rows.append(
            {
                "what": f"{what}, {kind}{how}, {count} pairs",
                "CPU ms": statistics.median(cost.cpu for cost in measured),
                **{f"ratio{name}": value for name, value in found.items()},
                "page faults": int(statistics.median(cost.faults for cost in measured)),
                "budget": budgets.get(kind, ""),
                **({"over": True} if found[""] > budgets.get(kind, math.inf) else {}),
            }
        )
    return rows


def measure(command: list[str], environment: dict[str, str]) -> Cost:
    """Return the cost of running a command."""
    start = time.perf_counter()
    out = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, cwd=Path(command[0]).parent, stdout=out, stderr=out)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (command, process.returncode)
    return Cost(1000 * wall, 1000 * (usage.ru_utime + usage.ru_stime), usage.ru_minflt)
