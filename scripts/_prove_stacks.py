"""Run the scenarios with the torch and the Python that each Lightning release was made for.

    scripts/prove stacks                           # every stack (a day)
    scripts/prove stacks --torch 2.2.2             # the stacks of one torch
    scripts/prove stacks --torch 2.2.2 --releases 2.2.5 --only sigterm-at-batch-boundary
    scripts/prove stacks --resume                  # go on after an interruption, or after a change
    scripts/prove stacks --minutes 15              # begin no run after that; then --resume
    scripts/prove stacks --torch 2.2.2 --releases 2.2.5 --check 12  # twelve cases of it, without a record: for CI

One environment at a time lies on disk: a torch of the registry brings up to 6 GB of CUDA libraries, which also run on
a CPU. It is made below the tests' cache, and removed when all its runs are done. Exit status 1 if a patch is worse than
stock somewhere.
"""

import argparse
import concurrent.futures
import json
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Optional

import _releases

from tests.equivalence import evidence, stacks
from tests.support import pythons
from tests.support.arms import ROOT

NEEDED = (
    "fsspec[http]",
    "jsonargparse[signatures]",
    "lightning-utilities",
    "packaging",
    "PyYAML",
    "requests",
    "rich",
    "setuptools>=64,<81",
    "torchmetrics",
    "tqdm",
    "typing-extensions",
    "wheel",
    "wrapt",
)
"""What Lightning and the shim need besides torch. Lightning itself is put on the path, release by release."""
_FACTS = """
import json, platform, numpy, torch, torchmetrics
print(json.dumps({"python": platform.python_version(), "torch": torch.__version__.partition("+")[0],
                  "numpy": numpy.__version__, "torchmetrics": torchmetrics.__version__}))
"""


def directory_of(environment: stacks.Environment) -> Path:
    return _releases.cache_dir() / "stacks" / f"torch-{environment.torch}"


def made(environment: stacks.Environment) -> Optional[str]:
    """The environment's Python, after it has been made and every other one removed; ``None`` if that failed."""
    directory = directory_of(environment)
    for other in directory.parent.glob("torch-*"):
        if other != directory:
            shutil.rmtree(other)
    python, finished = directory / "bin" / "python", directory / "finished"
    if finished.exists():
        return str(python)
    base = pythons.find(environment.python)
    if base is None:
        print(f"torch {environment.torch}: no Python {environment.python} on this machine", flush=True)
        return None
    started = time.monotonic()
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    torch = f"torch=={environment.torch}"
    pinned = {requirement.rstrip("=<>.0123456789") for requirement in environment.beside}
    needed = [name for name in NEEDED if name not in pinned]
    for command in (
        [base, "-m", "venv", str(directory)],
        [*pip, torch, *environment.beside],
        [*pip, torch, *environment.beside, *needed],
        [*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
    ):
        if subprocess.run(command).returncode:
            print(f"torch {environment.torch}: failed: {' '.join(command)}", flush=True)
            return None
    finished.touch()
    print(f"torch {environment.torch}: installed in {time.monotonic() - started:.0f} s", flush=True)
    return str(python)


def circumstances(release: str, python: str) -> dict:
    done = subprocess.run([python, "-c", _FACTS], stdout=subprocess.PIPE, text=True, check=True)
    return {**json.loads(done.stdout), "date": evidence.today()}


def to_run(release: str, environment: stacks.Environment, options: argparse.Namespace) -> list:
    """The cases of a stack that are asked for; with ``--resume`` those of them that the record lacks."""
    held = stacks.load().get(stacks.name(release, environment))
    cases = {one.case: one for one in held.cases} if held else {}
    asked = [p for p in stacks.proofs_for(release) if options.only is None or p.patch in options.only.split(",")]
    waiting = [p for p in asked if not options.resume or str(p) not in cases or cases[str(p)].stale]
    print(f"{stacks.name(release, environment)}: {len(waiting)} of {len(asked)} cases to run", flush=True)
    return waiting


def measure(
    environment: stacks.Environment, release: str, waiting: list, python: str, options: argparse.Namespace
) -> bool:
    """Run cases of a stack; whether all of them were run."""
    record, stack = stacks.load(), stacks.name(release, environment)
    order = [str(proof) for proof in stacks.proofs_for(release)]
    cases = {one.case: one for one in record[stack].cases if one.case in order} if stack in record else {}
    facts, verdicts, lock = circumstances(release, python), stacks.verdicts(release, python), threading.Lock()
    left = list(waiting)

    def one(proof) -> None:
        if time.monotonic() > options.until:
            return
        started = time.monotonic()
        seen = stacks.look(proof, release, python, verdicts[proof.patch])
        with lock:
            left.remove(proof)
            cases[str(proof)] = stacks.entry(proof, seen, stack)
            seconds = f"{time.monotonic() - started:.0f} s"
            print(f"{stack} {proof}: {seen.state} ({seconds}) {seen.why}, {len(left)} left", flush=True)
            record[stack] = stacks.Held({"planned": len(order), **facts}, [cases[c] for c in order if c in cases])
            stacks.write(record)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for finished in [pool.submit(one, proof) for proof in waiting]:
            finished.result()
    return not left


def check(release: str, python: str, options: argparse.Namespace) -> list[str]:
    """Run a few cases of a stack, spread over all of them, and write nothing.

    Returns:
        The cases that are worse with the shim than on stock, twice: once may be a busy machine.
    """
    proofs, known = stacks.proofs_for(release), stacks.verdicts(release, python)
    chosen = proofs[:: max(1, len(proofs) // options.check)][: options.check]

    def one(proof) -> bool:
        for _ in range(2):
            started = time.monotonic()
            seen = stacks.look(proof, release, python, known[proof.patch])
            print(f"{release} {proof}: {seen.state} ({time.monotonic() - started:.0f} s) {seen.why}", flush=True)
            if seen.state != stacks.WORSE:
                return False
        return True

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return [str(proof) for proof, is_worse in zip(chosen, pool.map(one, chosen)) if is_worse]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--torch", metavar="VERSION,...", help="only these")
    parser.add_argument("--releases", metavar="VERSION,...", help="only these releases of Lightning")
    parser.add_argument("--only", metavar="PATCH,...", help="only the cases of these patches")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time (default 2)")
    parser.add_argument("--resume", action="store_true", help="keep what the record has and nothing has changed since")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--keep", action="store_true", help="leave the last environment on disk")
    parser.add_argument("--check", type=int, metavar="NUMBER", help="run so many cases of each, and write no record")


def run(options: argparse.Namespace) -> int:
    options.until = time.monotonic() + 60 * options.minutes
    checked: list = []
    unmade: list = []
    for environment in stacks.ENVIRONMENTS:
        if options.torch and environment.torch not in options.torch.split(","):
            continue
        releases = [r for r in environment.releases if not options.releases or r in options.releases.split(",")]
        waiting = {} if options.check else {r: to_run(r, environment, options) for r in releases}
        wanted = [release for release in releases if options.check or waiting[release]]
        if not wanted:
            if releases and not options.keep:
                shutil.rmtree(directory_of(environment), ignore_errors=True)
            continue
        python = made(environment) if time.monotonic() < options.until else None
        if python is None:
            unmade.append(environment.torch)
            continue
        if options.check:
            checked += [f"{release}, {case}" for release in wanted for case in check(release, python, options)]
            complete = [True]
        else:
            complete = [measure(environment, release, waiting[release], python, options) for release in wanted]
        if all(complete) and not options.keep:
            shutil.rmtree(directory_of(environment))
    worse = checked if options.check else list(stacks.worse(stacks.load()))
    print("\n".join(f"worse than stock: {case}" for case in worse) or "nothing is worse than stock")
    if options.check and unmade:
        print(f"not checked: torch {', '.join(unmade)}")
    return 1 if worse or (options.check and unmade) else 0
