"""Runs a scenario in a variant: a process with one Lightning release, with or without the shim.

result = run("logged_metrics_device", Variant("lightning", "2.3.3", shim=True), simulated_cuda=True)
assert result.ok, result
result.observations   # [{...rank 0...}, {...rank 1...}]
"""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import runpy
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Optional

from packaging.version import Version

from tests.support import old_torch as old
from tests.support.preload import Preloaded
from tests.support.run import ROOT, execute, variables

sys.path.insert(0, str(ROOT / "scripts"))
import _releases

PATCHES = ROOT / "tests" / "patches"
SCENARIOS = ROOT / "tests" / "scenarios"
"""Programs that belong to no single patch, and modules that several programs import."""
sys.path.append(str(SCENARIOS))
SIMULATED_CUDA_SITE = ROOT / "tests" / "simulated_cuda" / "site"
DEVICE = "LIGHTNING_PATCHES_TEST_DEVICE"


@dataclass(frozen=True)
class Variant:
    """The environment in which a scenario runs.

    Args:
        distribution: ``"lightning"`` or ``"pytorch-lightning"``.
        version: a locked release.
        shim: ``import lightning_patches`` on top.
        directory: an unpacked wheel to use instead of the release's (the fork).
        python: the interpreter of another environment, with another torch (``scripts/_stacks.py``).
    """

    distribution: str
    version: str
    shim: bool = False
    directory: Optional[Path] = None
    python: str = sys.executable

    def __str__(self) -> str:
        return f"{self.distribution}-{self.version}{'+shim' if self.shim else ''}{'+fork' if self.directory else ''}"


@dataclass(frozen=True)
class Result:
    """The result of a run.

    Args:
        status: exit status of the program; 124 after a timeout.
        output: its stdout and stderr.
        observations: the observations of each rank, by rank; may be empty after an error.
    """

    status: int
    output: str
    observations: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def facts(self) -> dict[str, Any]:
        """The observations of rank zero; the program must have ended well."""
        assert self.ok and self.observations, self
        return self.observations[0]

    def __str__(self) -> str:
        return f"status {self.status}, observed {self.observations}\n{self.output[-6000:]}"


def run(
    scenario: str,
    variant: Variant,
    case: str = "",
    simulated_cuda: bool = False,
    toggle: Optional[str] = None,
    environment: Optional[dict[str, str]] = None,
    timeout: float = 150,
    fresh: bool = False,
    old_torch: bool = False,
) -> Result:
    """Run ``tests/patches/*/<scenario>.py`` in ``variant``, and end all its processes.

    The result is cached in this process, since several tests use the same variant.

    Args:
        scenario: name of the program, there or in ``tests/scenarios``.
        variant: the environment.
        case: passed to the program as ``CASE``.
        simulated_cuda: two simulated CUDA devices and backend "nccl" (see ``tests/simulated_cuda``). With the variable
            ``LIGHTNING_PATCHES_TEST_DEVICE=cuda``, a real GPU instead, which two ranks share.
        toggle: value of ``LIGHTNING_PATCHES``; unset if ``None``.
        environment: additional variables.
        timeout: in seconds. The process group is killed after it, and when the program ends.
        fresh: start a new Python instead of forking a process that has imported torch (see
            ``tests/support/preload.py``). Always True with another ``PYTHONPATH``.
        old_torch: run in the Python of ``tests/support/old_torch``.
    """
    variables = dict(environment or {})
    if simulated_cuda and os.environ.get(DEVICE) == "cuda":  # on a real GPU
        simulated_cuda, fresh = False, True
        variables["SCENARIO_ONE_CARD"] = "1"
    more = tuple(sorted(variables.items()))
    result = _run(scenario, variant, case, simulated_cuda, toggle, more, timeout, fresh, old_torch)
    return copy.deepcopy(result)  # some tests modify their result


@cache
def _run(
    scenario: str,
    variant: Variant,
    case: str,
    simulated_cuda: bool,
    toggle: Optional[str],
    environment: tuple[tuple[str, str], ...],
    timeout: float,
    fresh: bool,
    old_torch: bool,
) -> Result:
    with tempfile.TemporaryDirectory(prefix="scenario-") as out:
        variables = environment_of(variant, simulated_cuda, toggle)
        variables.update(SCENARIO_CASE=case, SCENARIO_OUT=out, SCENARIO_SHIM="1" if variant.shim else "0")
        variables.update(environment)
        variables["PYTHONPATH"] += f"{os.pathsep}{SCENARIOS}"
        program = program_of(scenario)
        if old_torch:
            python = old.find().python
            assert python is not None, old.find().reason
            variables["PYTHONPATH"] = os.pathsep.join((str(old.SITE), variables["PYTHONPATH"]))
            status, output = execute([python, str(program)], variables, timeout, cwd=out)
        elif fresh or "PYTHONPATH" in dict(environment):
            status, output = execute([variant.python, str(program)], variables, timeout, cwd=out)
        else:
            status, output = preloaded(simulated_cuda, variant.python).execute(program, variables, timeout, cwd=out)
        found = {int(p.stem[4:]): json.loads(p.read_text()) for p in Path(out).glob("rank*.json")}
        return Result(status, output, [found[rank] for rank in sorted(found)])


def program_of(scenario: str) -> Path:
    found = [*PATCHES.glob(f"*/{scenario}.py"), *SCENARIOS.glob(f"{scenario}.py")]
    assert len(found) == 1, f"programs of the name {scenario}: {found}"
    return found[0]


@cache
def preloaded(simulated_cuda: bool = False, python: str = sys.executable) -> Preloaded:
    """Return the process from which programs are forked. There is one for each combination of arguments."""
    on_cuda = {"SIMULATED_CUDA": "1"} if simulated_cuda else {}
    return Preloaded(variables(PYTHONPATH=str(SIMULATED_CUDA_SITE) if simulated_cuda else "", **on_cuda), python)


@cache
def no_simulated_cuda() -> str:
    """Return why the simulated CUDA device is not available, and what to do; "" if it is."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return "This Python has no torch."
    library = runpy.run_path(str(SIMULATED_CUDA_SITE / "simulated_cuda" / "_library.py"))
    return str(library["obstacle"](spec.submodule_search_locations[0]))


@cache
def _build_simulated_cuda() -> None:
    """Compile the device before the first program needs it, outside of that program's time limit.

    Skips the current test if the device is not available.
    """
    if no_simulated_cuda():
        import pytest  # scripts/demo, whose Python may lack pytest, gets here only if the device is available

        pytest.skip(no_simulated_cuda())
    environment = variables(SIMULATED_CUDA="1", PYTHONPATH=str(SIMULATED_CUDA_SITE))
    subprocess.run([sys.executable, "-c", "import torch"], env=environment, check=True, timeout=600)


def distribution_of(version: str) -> str:
    """``"lightning"``, or ``"pytorch-lightning"`` below 2.1, where ``lightning`` imports the whole App."""
    return "lightning" if Version(version) >= Version("2.1") else "pytorch-lightning"


def directory_of(variant: Variant) -> Path:
    return variant.directory or _releases.unpacked(variant.distribution, variant.version)


def environment_of(variant: Variant, simulated_cuda: bool = False, toggle: Optional[str] = None) -> dict[str, str]:
    """Return the variables of a process that imports the release of ``variant``."""
    directory = directory_of(variant)
    path = [str(ROOT), str(directory)]
    if variant.version.startswith("1.8.") and variant.python == sys.executable:
        path.append(str(_releases.beside_1x()))
    if simulated_cuda:
        _build_simulated_cuda()
    if simulated_cuda or os.environ.get("SIMULATED_CUDA") == "1":  # in a rehearsal of tests/gpu every process has them
        path.insert(0, str(SIMULATED_CUDA_SITE))
    found = variables(
        PYTHONPATH=os.pathsep.join(path),
        SCENARIO_NAMESPACE=_releases.NAMESPACES[variant.distribution],
        OMP_NUM_THREADS="1",
        PYTHONWARNINGS="ignore::UserWarning:lightning,ignore:pkg_resources",
    )
    if simulated_cuda:
        found["SIMULATED_CUDA"] = "1"
    if toggle is not None:
        found["LIGHTNING_PATCHES"] = toggle
    return found
