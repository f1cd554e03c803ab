"""Run programs for Lightning 1.5 to 1.9 with today's packages and with those of their time.

    scripts/prove programs_of_1x                   # all of them: 3.4 GB of disk, half an hour on two cores
    scripts/prove programs_of_1x --resume          # go on after an interruption, or after a change
    scripts/prove programs_of_1x --releases 1.5.10,1.9.5 --jobs 1

The environment with torch 1.13.1 is made first, and removed when all is done. Exit status 1 if a program does not do
what it did then, but for the command line of 1.5, or if stock does not fail as users report it.
"""

import argparse
import concurrent.futures
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import _prove_stacks
import _releases

from tests.equivalence import evidence
from tests.equivalence import programs_of_1x as programs
from tests.equivalence.evidence import Seen
from tests.equivalence.programs_of_1x import OLD, SHIM_84, SHIM_OLD, STOCK_84
from tests.support.arms import SCENARIOS, Arm
from tests.support.arms import run as run_scenario

SETUPTOOLS = "setuptools==84.2.1"
_FACTS = """
import platform, torch, numpy, torchmetrics, jsonargparse, importlib.metadata as metadata
names = ("numpy", "torchmetrics", "jsonargparse", "setuptools")
versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
print(f"torch {torch.__version__}, Python {platform.python_version()}, {versions}")
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--releases", default=",".join(programs.RELEASES))
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time (default 2)")
    parser.add_argument("--resume", action="store_true", help="keep what the record has and nothing has changed since")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--keep", action="store_true", help="leave the environment with torch 1.13.1 on disk")


def with_setuptools_84() -> str:
    """A Python with the packages of this one but setuptools, which is a new one."""
    sys.path.insert(0, str(SCENARIOS))
    import _without_setuptools

    directory = _releases.cache_dir() / "beside" / "setuptools-84"
    shutil.rmtree(directory, ignore_errors=True)
    python = _without_setuptools.make(directory)
    site = next(directory.glob("lib/python*/site-packages"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), SETUPTOOLS]
    subprocess.run(pip, check=True)
    return python


def facts(python: str) -> str:
    done = subprocess.run([python, "-c", _FACTS], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def run(options: argparse.Namespace) -> int:
    until = time.monotonic() + 60 * options.minutes
    kept = {(one.case, one.place[1]): one for one in programs.read()[1]}
    fresh = {key for key, one in kept.items() if options.resume and not one.stale}
    todo = [
        (version, case)
        for version in options.releases.split(",")
        for case in programs.CASES
        if not fresh.issuperset((f"{case}: {arm}", version) for arm in arms_of(case))
    ]
    old, new = _prove_stacks.made(programs.STACK), with_setuptools_84()
    if old is None:
        return 1
    pythons = {OLD: old, SHIM_OLD: old, STOCK_84: new, SHIM_84: new}
    head = {"date": evidence.today(), "today": facts(sys.executable), "its time": facts(old)}
    lock = threading.Lock()

    def one(version: str, case: str) -> None:
        right = None
        for arm in arms_of(case):
            if time.monotonic() > until:
                return
            started = time.monotonic()
            which = Arm("pytorch-lightning", version, arm.startswith("shim"), python=pythons.get(arm, sys.executable))
            result = run_scenario(programs.SCENARIO, which, case, fresh=True)
            right = result.observations if arm == OLD else right
            seen = programs.saw(result, right)
            wanted = programs.expected(version, case, arm)
            mark = "" if seen == wanted else f" INSTEAD OF {wanted}: {result}"
            with lock:
                name = f"{case}: {arm}"
                subject = programs.subject(version, arm)
                kept[name, version] = Seen(name, seen, ("", version), subject=subject)
                print(f"{version} {name}: {seen}{mark} ({time.monotonic() - started:.0f} s)", flush=True)
                evidence.write(programs.RECORD, head, ordered(kept))

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for finished in [pool.submit(one, *task) for task in todo]:
            finished.result()
    if not options.keep and time.monotonic() < until:
        shutil.rmtree(_prove_stacks.directory_of(programs.STACK))
    shutil.rmtree(Path(new).parents[1])
    wrong = [
        f"{version} {name}: {seen.saw}"
        for (name, version), seen in kept.items()
        if seen.saw != programs.expected(version, *name.split(": "))
    ]
    print("\n".join(wrong) or "all is as it has to be")
    return 1 if wrong else 0


def arms_of(case: str) -> tuple[str, ...]:
    """Without pkg_resources stock does not get beyond the import."""
    return programs.ARMS if case == "import" else tuple(arm for arm in programs.ARMS if arm != STOCK_84)


def ordered(kept: dict[tuple[str, str], Seen]) -> list[Seen]:
    cases = list(programs.CASES)
    return [kept[key] for key in sorted(kept, key=lambda key: (cases.index(key[0].split(": ")[0]), key[0]))]
