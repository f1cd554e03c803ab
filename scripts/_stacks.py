"""Run the patches with the oldest and the newest torch and Python.

Each patch runs its first case (a ``bug`` row of ``tests/patches``) on stock and with the patches. If the bug is not
present, stock must succeed and observe the same as the fixed release with the same torch (or as the recommended usage
on the same release), if that can run there.

The environments are in the tests' cache, and are removed after their runs.
"""

from __future__ import annotations

import concurrent.futures
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Optional

from packaging.version import Version

from lightning_patches.engine import gate
from lightning_patches.fork import diffs as _diffs
from lightning_patches.patch import Need
from tests.equivalence import boundaries
from tests.support import pythons
from tests.support.expectations import part, shows_bug
from tests.support.run import ROOT
from tests.support.variants import Result, Variant, run

import _environment  # isort: skip  (tests.support.variants has put scripts/ and scenarios/ on the path)
import _releases  # isort: skip
from _expect import Row  # isort: skip

DISTRIBUTION = "pytorch-lightning"
"""It has the same code as ``lightning``, and can be imported from 2.0.0 on."""
CURED, NOT_THERE, NOT_SUPPORTED = "cured", "not there", "not supported"
NOT_CURED, WORSE, BROKEN, FAILS = "not cured", "worse", "cannot be shown", "stock fails"
STATES = (CURED, NOT_THERE, NOT_SUPPORTED, BROKEN, FAILS, NOT_CURED, WORSE)
WRONG = (FAILS, NOT_CURED, WORSE)
"""States that fail. If stock fails for another reason than the bug, the case must state what it needs."""
TIMEOUT = 240
NEEDED = (
    *("fsspec[http]", "jsonargparse[signatures]", "lightning-utilities", "packaging", "PyYAML", "requests"),
    *("setuptools>=64,<81", "torchmetrics", "tqdm", "typing-extensions", "wheel", "wrapt"),
)
"""Requirements of Lightning and the package besides torch. Lightning is added to the path for each release."""


@dataclass(frozen=True)
class Stack:
    """One torch.

    Args:
        torch: its version.
        pythons: the Python that it gets, the first of these that is on this machine.
        releases: the Lightning releases that are run with it.
        beside: further requirements, of that time.
    """

    torch: str
    pythons: tuple[str, ...]
    releases: tuple[str, ...]
    beside: tuple[str, ...] = ()


# Pinned, so that pip does not search for a quarter of an hour for what still runs on Python 3.8.
OF_2023 = ("numpy<2", "torchmetrics==1.2.1", "jsonargparse[signatures]==4.32.1", "aiohttp==3.10.11")
OF_1X = ("lightning-utilities==0.11.9", "fsspec==2024.10.0", "tensorboardX==2.6.2.2", "pyDeprecate==0.3.2")
STACKS = (
    Stack("1.13.1", ("3.8",), ("1.8.6", "1.9.5", "2.0.9"), (*OF_2023, *OF_1X)),
    Stack("2.0.1", ("3.10",), ("1.9.5", "2.0.9"), (*OF_2023, *OF_1X)),
    Stack("2.15.0", ("3.14", "3.13"), ("2.6.6", "2.2.5")),
)


class NoStackError(Exception):
    """The environment cannot be made here."""


@dataclass
class Seen:
    """The result of one case.

    Args:
        stock: "bug", "right", "fails", or "wrong" (succeeds with wrong observations).
        shim: "bug", "right", "fails", or "differs" (from a right stock).
        state: the conclusion for the patch, one of :data:`STATES`.
        why: explanation.
    """

    stock: str
    shim: str
    state: str
    why: str = ""


def directory_of(stack: Stack) -> Path:
    return _releases.cache_dir() / "stacks" / f"torch-{stack.torch}"


def made(stack: Stack, torch_index: str) -> str:
    """The Python of an environment that has been made for it.

    Args:
        stack: which.
        torch_index: the only package index to take torch from; empty for PyTorch's index of builds for CPUs, then
            pip's index, which has the build for CUDA: gigabytes.

    Raises:
        NoStackError: with the reason.
    """
    base = next(filter(None, map(pythons.find, stack.pythons)), None)
    if base is None:
        raise NoStackError(f"no Python {' or '.join(stack.pythons)} on this machine")
    directory = directory_of(stack)
    python = directory / "bin" / "python"
    shutil.rmtree(directory, ignore_errors=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    torch = f"torch=={stack.torch}"
    pinned = {requirement.rstrip("=<>.0123456789") for requirement in stack.beside}
    needed = [name for name in NEEDED if name not in pinned]
    run_or_refuse([base, "-m", "venv", str(directory)])
    indexes = [torch_index] if torch_index else [_environment.CPU_INDEX, ""]
    run_or_refuse(*([*pip, "--retries=1", torch, *(["--index-url", index] if index else [])] for index in indexes))
    run_or_refuse([*pip, torch, *stack.beside])
    run_or_refuse([*pip, torch, *stack.beside, *needed])
    run_or_refuse([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
    return str(python)


def run_or_refuse(*commands: list[str]) -> None:
    """Run these commands until one succeeds.

    Raises:
        NoStackError: none did; with the last line of the last one's output.
    """
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode == 0:
            return
    last = (done.stdout.strip().splitlines() or ["no output"])[-1]
    raise NoStackError(f"{' '.join(command[:4])} ... failed: {last[-200:]}")


def version_of(python: str) -> str:
    program = "import platform, torch; print(f'torch {torch.__version__}, Python {platform.python_version()}')"
    command = [python, "-c", program]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def cases(release: str, names: Sequence[str] = ()) -> list[Row]:
    """One case of each patch (of these, if any are named) that a release needs, but for those that need a device."""
    found: dict[str, Row] = {}
    for row in boundaries.bugs():
        if names and row.patch not in names:
            continue
        affected = release in gate.affected_releases(_diffs.record(row.patch))
        if affected and not row.simulated_cuda and Version(release) >= Version(row.since or "0"):
            found.setdefault(row.patch, row)
    return list(found.values())


def look_at_all(release: str, python: str, jobs: int, chosen: list[Row]) -> dict[str, Seen]:
    """Return the result of each of these cases on a release, by the patch's name."""
    known = verdicts(release, python)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        seen = pool.map(lambda row: look(row, release, python, known[row.patch]), chosen)
        return {row.patch: one for row, one in zip(chosen, seen)}


def verdicts(release: str, python: str) -> dict[str, tuple[str, str]]:
    """Return the verdict of each patch on a stack.

    Raises:
        RuntimeError: the program printed no verdicts.
    """
    result = run("_verdicts", Variant(DISTRIBUTION, release, shim=True, python=python), toggle="all", timeout=TIMEOUT)
    if not result.ok or not result.observations:
        raise RuntimeError(f"no verdicts for {DISTRIBUTION} {release}: {result}")
    return {name: tuple(entry) for name, entry in result.observations[0]["verdicts"].items()}


def look(row: Row, release: str, python: str, verdict: tuple[str, str]) -> Seen:
    """Run a case in the stock and in the shim variant of a stack, and judge."""
    if lacking := missing_feature(tuple(Need(*need.split()) for need in row.needs), python):
        return Seen("not run", "not run", NOT_SUPPORTED, lacking)
    stock = run_case(row, Variant(DISTRIBUTION, release, python=python))
    toggle = row.patch if row.alone else f"1,{row.patch}"
    shim = run_case(row, Variant(DISTRIBUTION, release, shim=True, python=python), toggle)
    seen = judge(row, stock, shim, verdict)
    if seen.state not in (NOT_THERE, NOT_CURED, WORSE) and (seen.state, seen.shim) != (FAILS, "right"):
        return seen
    reference = run_reference(row, release, python)
    return seen if reference is None else compare(seen, row, stock, shim, reference)


@cache
def missing_feature(needs: tuple[Need, ...], python: str) -> str:
    """Return the feature that a case needs and a stack lacks, as a reason; "" if it has all."""
    program = "from lightning_patches.engine.gate import missing_feature; from lightning_patches.patch import Need; "
    program += f"print(missing_feature({needs}, imports=True))"
    variables = {**os.environ, "_LIGHTNING_PATCHES_IMPORT_ONLY": "1"}
    command = [python, "-c", program]
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True).stdout.strip()


def run_reference(row: Row, release: str, python: str) -> Optional[Result]:
    """Run the reference with the same torch: the fixed release, else the recommended usage, else ``None``."""
    patch = _diffs.record(row.patch)
    if patch.fixed_in is not None:
        return run_case(row, Variant(DISTRIBUTION, patch.fixed_in, python=python))
    if row.like is None and not row.like_variables:
        return None
    case = row.case if row.like is None else row.like
    return run_case(row, Variant(DISTRIBUTION, release, python=python), None, case, row.like_variables)


def run_case(
    row: Row,
    variant: Variant,
    toggle: Optional[str] = None,
    case: Optional[str] = None,
    variables: tuple[tuple[str, str], ...] = (),
) -> Result:
    case = row.case if case is None else case
    return run(row.program, variant, case, False, toggle, dict(variables), timeout=TIMEOUT, fresh=row.fresh)


def judge(row: Row, stock: Result, shim: Result, verdict: tuple[str, str]) -> Seen:
    """Return the result of a patch from two runs."""
    of_stock, of_shim = word(row, stock), word(row, shim)
    if of_stock == of_shim == "right" and boundaries.view(part(row.compare), stock) != boundaries.view(
        part(row.compare), shim
    ):
        of_shim = "differs"
    if of_stock == "right":
        if of_shim == "right":
            why = verdict[1] if verdict[0] == "not-affected" else "stock is right with this torch"
            return Seen(of_stock, of_shim, NOT_THERE, why)
        return Seen(of_stock, of_shim, WORSE, short(shim))
    if of_stock == "fails":
        return Seen(of_stock, of_shim, FAILS, short(stock))
    if of_shim == "right":
        return Seen(of_stock, of_shim, CURED)
    if verdict[0] == "not-supported" and of_shim == "bug":
        return Seen(of_stock, of_shim, NOT_SUPPORTED, verdict[1])
    return Seen(of_stock, of_shim, NOT_CURED, f"{verdict[0]}: {verdict[1]}; {short(shim)}")


def compare(seen: Seen, row: Row, stock: Result, shim: Result, reference: Result) -> Seen:
    """Refine a result with the reference.

    stock may succeed and be wrong, or fail differently, or the reference may fail.
    """
    compared = row.compare
    if _diffs.record(row.patch).fixed_in is None:
        compared = row.compare if row.compare_like is None else row.compare_like
    right, of_stock, of_shim = (
        boundaries.view(part(compared), reference),
        *(boundaries.view(part(row.compare), r) for r in (stock, shim)),
    )
    if word(row, reference) != "right":
        # Compare the errors, too: programs that fail before they observe anything have equal observations.
        if seen.state == NOT_CURED and of_shim == right and last_line(shim) == last_line(reference):
            return replace(seen, state=BROKEN, why=f"what is right there ends as the shim does: {short(reference)}")
    elif seen.state == NOT_THERE and of_stock != right:
        return replace(seen, state=BROKEN, why=f"stock shows no bug, but {difference(of_stock, right)}")
    elif seen.state == FAILS and of_shim == right:
        return replace(seen, state=CURED, why=f"stock does not end as reported: {seen.why}")
    elif seen.state == WORSE and of_shim == right:
        why = f"stock does not end as reported: it ends well, and wrong: {difference(of_stock, right)}"
        return replace(seen, stock="wrong", shim="right", state=CURED, why=why)
    return seen


def word(row: Row, result: Result) -> str:
    try:
        has_bug = shows_bug(row, result)
    except KeyError:  # the program failed before it observed this
        return "fails"
    return "bug" if has_bug else "right" if result.ok and result.observations else "fails"


def last_line(result: Result) -> str:
    return next((line.strip() for line in reversed(result.output.splitlines()) if line.strip()), "")


def short(result: Result) -> str:
    """Return the end of a program's output, without paths."""
    lines = [line.strip() for line in result.output.strip().splitlines() if line.strip()]
    return f"status {result.status}: {' | '.join(lines[-2:])[-240:]}"


def difference(seen: Any, right: Any, where: str = "") -> str:
    """The first place in which two observations differ."""
    if isinstance(seen, dict) and isinstance(right, dict) and seen.keys() == right.keys():
        pairs = [(f"{where}.{key}" if where else str(key), seen[key], right[key]) for key in seen]
    elif isinstance(seen, list) and isinstance(right, list) and len(seen) == len(right):
        pairs = [(f"{where}[{index}]", *both) for index, both in enumerate(zip(seen, right))]
    else:
        return f"{where} is {seen}, and not {right}"[:240]
    return next((difference(a, b, place) for place, a, b in pairs if a != b), "")
