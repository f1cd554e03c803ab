"""What the patches add to the start of a Python, and to the import of Lightning.

    scripts/benchmark startup                  # exit status 1 if something is over its budget
    scripts/benchmark startup --rounds 400 --imports 40
    scripts/benchmark startup --release 2.6.4

Each figure is the median of differences between two runs made one after the other, one with and one without, in an
environment in which the package is installed and compiled. CPU time is what the process used, by itself and in the
kernel; on a busy machine it is the figure to look at. "Asleep" is the autostart line with LIGHTNING_PATCHES unset,
"armed" a Python with LIGHTNING_PATCHES set that never imports Lightning, "firing" the one that does.

What firing adds is drowned by the noise of Lightning's own import, most of which is torch. So every module that a stock
`import lightning.pytorch` loads, other than Lightning itself, is imported before the clock starts: what is measured is
the rest of the import, with and without the patches, and what only the patches need counts in full.
"""

from __future__ import annotations

import argparse
import compileall
import json
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
FIRING_BUDGET = 0.01
"""Of Lightning's import."""
STOCK_MODULES = """
import json, sys
before = set(sys.modules)
import lightning.pytorch
names = [n for n in sys.modules if n not in before and n.partition('.')[0] != 'lightning']
print(json.dumps(names))
"""
TIMED_IMPORT = """
import importlib, json, os, sys, time
for name in json.loads(os.environ["PRELOAD"]):
    try:
        importlib.import_module(name)
    except Exception:
        pass
before = set(sys.modules)
start, cpu = time.perf_counter(), time.process_time()
import lightning.pytorch
wall, cpu = time.perf_counter() - start, time.process_time() - cpu
added = sorted(n for n in set(sys.modules) - before if not n.startswith(("lightning.", "lightning_patches")))
print(json.dumps([wall, cpu, added]))
"""


@dataclass(frozen=True)
class Cost:
    """Time of one process, in milliseconds."""

    wall: float
    cpu: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=200, help="starts of each kind (default: %(default)s)")
    parser.add_argument("--imports", type=int, default=15, help="imports of each kind (default: %(default)s)")
    parser.add_argument("--release", default="2.3.3", help="of Lightning (default: %(default)s)")


def run(args: argparse.Namespace) -> Rows:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as directory:
        plain, enabled = Path(directory) / "plain", Path(directory) / "enabled"
        for environment in (plain, enabled):
            make(environment)
        subprocess.run(
            [str(enabled / "bin" / "python"), "-m", "lightning_patches", "autostart", "enable"],
            check=True,
            env=variables(),
            stdout=subprocess.DEVNULL,
        )
        return [*starts(plain, enabled, args.rounds), *imports(enabled, args.release, args.imports)]


def row(what: str, wall: float, cpu: float, of: float, budget: float) -> dict[str, Any]:
    """What is added, in milliseconds; ``of`` is the processor time of what it is added to."""
    costs = {"adds ms": wall, "adds CPU ms": cpu, "% of it": 100 * cpu / of, "budget ms": budget}
    return {"what": what, **costs, **({"over": True} if cpu > budget else {})}


def make(environment: Path) -> None:
    """A virtual environment with the package installed, and the torch of this Python within reach."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = next(environment.glob("lib/python*/site-packages"))
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "lightning_patches", site / "lightning_patches", ignore=ignored)
    outside = ROOT / "lightning_patches" / "activation" / "canary" / "_lightning_patches"
    shutil.copytree(outside, site / "_lightning_patches", ignore=ignored)
    outer = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    (site / "1_outer.pth").write_text("".join(f"{path}\n" for path in outer))
    compileall.compile_dir(site, quiet=1)


def variables(**more: str) -> dict[str, str]:
    dropped = ("PYTHON", "LIGHTNING_PATCHES", "_LIGHTNING_PATCHES")
    return {**{name: value for name, value in os.environ.items() if not name.startswith(dropped)}, **more}


def starts(plain: Path, enabled: Path, rounds: int) -> Rows:
    launcher = next(plain.glob("lib/python*/site-packages/lightning_patches/activation/launcher"))
    version = ".".join(map(str, sys.version_info[:2]))
    below_run = {
        "LIGHTNING_PATCHES": "1",
        "PYTHONPATH": str(launcher),
        "_LIGHTNING_PATCHES_FOR": f"{version} {os.path.realpath(plain)}",
    }
    kinds: dict[str, tuple[Path, str, dict[str, str]]] = {
        "bare": (plain, "pass", {}),
        "asleep": (enabled, "pass", {}),
        "armed by autostart": (enabled, "pass", {"LIGHTNING_PATCHES": "1"}),
        "armed by run": (plain, "pass", below_run),
        "armed by import": (plain, "import lightning_patches", {}),
    }
    for environment, _, more in kinds.values():  # what is to be armed is, and the rest is not
        found = "any(type(f).__name__ == '_Finder' for f in sys.meta_path)"
        command = [str(environment / "bin" / "python"), "-c", f"import sys; print({found})"]
        armed = subprocess.run(command, env=variables(**more), capture_output=True, text=True, check=True).stdout
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


def imports(enabled: Path, release: str, count: int) -> Rows:
    unpacked = str(_releases.unpacked("lightning", release))
    python = str(enabled / "bin" / "python")
    stock = variables(PYTHONPATH=unpacked, PYTHONWARNINGS="ignore")
    patched = {**stock, "LIGHTNING_PATCHES": "default,quiet"}
    names = subprocess.run([python, "-c", STOCK_MODULES], env=stock, capture_output=True, text=True, check=True).stdout
    whole = statistics.median(measure([python, "-c", "import lightning.pytorch"], stock).cpu for _ in range(5))
    walls, cpus, added = [], [], []
    for _ in range(count):
        results = []
        for environment in (stock, patched):
            done = subprocess.run(
                [python, "-c", TIMED_IMPORT],
                env={**environment, "PRELOAD": names},
                capture_output=True,
                text=True,
                check=True,
            )
            results.append(json.loads(done.stdout.splitlines()[-1]))
        walls.append(1000 * (results[1][0] - results[0][0]))
        cpus.append(1000 * (results[1][1] - results[0][1]))
        added = sorted(set(results[1][2]) - set(results[0][2]))
    wall, cpu, budget = statistics.median(walls), statistics.median(cpus), FIRING_BUDGET * whole
    return [
        {"what": f"import lightning.pytorch {release}, medians of {count} pairs", "CPU ms": whole},
        {**row("firing", wall, cpu, whole, budget), "modules that only the patches need": ", ".join(added) or "none"},
    ]


def measure(command: list[str], environment: dict[str, str]) -> Cost:
    """Run a command, and see what it cost."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (command, process.returncode)
    return Cost(1000 * wall, 1000 * (usage.ru_utime + usage.ru_stime))
