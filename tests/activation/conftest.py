"""Python environments with a single way to activate the patches, and helpers to start programs in them."""

from __future__ import annotations

import configparser
import functools
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest

from tests.support.run import ROOT, end, execute, start, variables
from tests.support.variants import Variant, environment_of

ENTRY_POINTS = ROOT / "lightning_patches" / "activation" / "entry_points"
sys.path.append(str(ENTRY_POINTS))

PROGRAMS = Path(__file__).parent / "programs"
TRAIN = str(PROGRAMS / "train.py")
PATCHES = ["logged-metrics-device", "dataloader-error-unmasked"]
"""The patches that the programs report."""
RELEASE = Variant("lightning", "2.3.3")
OUTER = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
"""Directories of this Python's packages, those of the system included in a virtual environment that can import them."""
WAYS = ("import", "run", "autostart")
HEAVY = {"wrapt", "packaging", "importlib.metadata", "torch", "typing", "inspect", "lightning_patches.engine.patcher"}
"""Modules that must not be imported before Lightning."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment that has this checkout, and the torch of the Python that runs the tests.

    Args:
        directory: the environment.
    """

    directory: Path

    @property
    def python(self) -> str:
        return str(self.directory / "bin" / "python")

    @property
    def site(self) -> Path:
        major, minor = sys.version_info[:2]
        return self.directory / "lib" / f"python{major}.{minor}" / "site-packages"

    def command(self, name: str) -> str:
        return str(self.directory / "bin" / name)

    def variables(self, lightning: bool = True, **more: str) -> dict[str, str]:
        """The variables of a shell in which this environment is active, and nothing activates the patches yet.

        Args:
            lightning: Lightning 2.3.3 is on PYTHONPATH; otherwise PYTHONPATH is not set.
            more: further variables.
        """
        found = dict(_release() if lightning else variables())
        path = found.pop("PYTHONPATH").split(os.pathsep)
        if lightning:
            found["PYTHONPATH"] = os.pathsep.join(entry for entry in path if entry != str(ROOT))
        found["PATH"] = f"{self.directory / 'bin'}{os.pathsep}{found['PATH']}"
        return {**found, **more}

    def run(
        self, *command: str, timeout: float = 200, cwd: Optional[Path] = None, lightning: bool = False, **more: str
    ) -> tuple[int, str]:
        """Run a command of this environment, on request with Lightning. Return exit status and output."""
        program = self.python if command[0] == "python" else command[0]
        directory = str(cwd or self.directory)
        return execute([program, *command[1:]], self.variables(lightning, **more), timeout, cwd=directory)


@functools.cache
def _release() -> dict[str, str]:
    return environment_of(RELEASE)


def make_environment(directory: Path) -> Environment:
    """A virtual environment without pip, with this checkout as if it were installed."""
    environment = Environment(directory)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    (environment.site / "0_checkout.pth").write_text(f"{ROOT}\n{ENTRY_POINTS}\n")
    (environment.site / "1_outer.pth").write_text("".join(f"{path}\n" for path in OUTER))
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    for line in settings["options.entry_points"]["console_scripts"].strip().splitlines():
        name, _, target = line.partition("=")
        write_script(environment, name.strip(), target.strip())
    write_script(environment, "torchrun", "torch.distributed.run:main")
    return environment


def write_script(environment: Environment, name: str, target: str) -> None:
    """A console script, as an installer writes it."""
    module, _, function = target.partition(":")
    path = environment.directory / "bin" / name
    path.write_text(
        f"#!{environment.python}\nimport sys\nfrom {module} import {function}\n"
        f"if __name__ == '__main__':\n    sys.exit({function}())\n"
    )
    path.chmod(0o755)


def install_metadata(environment: Environment) -> Path:
    """Write the metadata that pip would install besides the package: the entry points of setup.cfg."""
    settings = configparser.ConfigParser()
    settings.optionxform = str  # type: ignore[assignment, method-assign]
    settings.read(ROOT / "setup.cfg")
    directory = environment.site / "lightning_patches-0.0.0.dist-info"
    directory.mkdir()
    (directory / "METADATA").write_text("Metadata-Version: 2.1\nName: lightning-patches\nVersion: 0.0.0\n")
    (directory / "RECORD").write_text("lightning_patches-0.0.0.dist-info/RECORD,,\n")
    text = "\n".join(f"[{group}]{lines}" for group, lines in settings["options.entry_points"].items())
    (directory / "entry_points.txt").write_text(f"{text}\n")
    return directory


class World:
    """One way to activate the patches.

    Args:
        way: of ``WAYS``, or ``"none"``.
        environment: where Python comes from; for ``autostart`` the one in which that is enabled.
        out: where the processes of the program write what they see.
    """

    def __init__(self, way: str, environment: Environment, out: Path) -> None:
        self.way = way
        self.environment = environment
        self.out = out

    def launch(self, *command: str, timeout: float = 500, **more: str) -> dict[str, Any]:
        """Run a command of the environment in this way. Return the reports by ``<what>-<rank>``."""
        status, output = execute(self.command(command), self.variables(**more), timeout, cwd=str(self.out))
        self.check_output(status, output)
        return self.reports()

    def start(self, command: list[str], variables: dict[str, str], log: Path) -> tuple[subprocess.Popen[bytes], Path]:
        """Start one command of several that need each other."""
        with open(log, "wb") as output:
            return start(command, output, variables, self.out), log

    def wait(self, processes: list[tuple[subprocess.Popen[bytes], Path]], timeout: float = 500) -> None:
        """Wait for all processes, and end their children."""
        deadline = time.monotonic() + timeout
        statuses = []
        try:
            for process, _ in processes:
                statuses.append(process.wait(max(0.0, deadline - time.monotonic())))
        finally:
            for process, _ in processes:
                end(process.pid)
                process.wait()
        for status, (_, log) in zip(statuses, processes):
            self.check_output(status, log.read_text(errors="replace"))

    def check_output(self, status: int, output: str) -> None:
        assert status == 0, output
        assert "is not patched" not in output  # Lightning's entry point gives the same result

    def variables(self, **more: str) -> dict[str, str]:
        variables = self.environment.variables(PROBE_WAY=self.way, PROBE_OUT=str(self.out), **more)
        if self.way == "autostart":
            variables["LIGHTNING_PATCHES"] = "1"  # autostart needs the variable; the other two ways do not
        return variables

    def command(self, command: tuple[str, ...]) -> list[str]:
        started = [self.environment.command(command[0]) if command[0] == "torchrun" else command[0], *command[1:]]
        if self.way == "run":
            return [self.environment.command("lightning-patches"), "run", "--", *started]
        return [self.environment.python, *started] if started[0].endswith(".py") else started

    def reports(self) -> dict[str, Any]:
        return {path.stem: json.loads(path.read_text()) for path in self.out.glob("*.json")}


def check(reports: dict[str, Any], expected: set[str]) -> None:
    """Check that the patches are applied in all of these processes, which must be different ones."""
    assert set(reports) == expected
    for name, seen in reports.items():
        assert seen["live"] == PATCHES, (name, seen)
        assert seen["verdicts"] == ["applied", "applied"], (name, seen)


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment in which nothing activates by itself; tests must not change it."""
    made = make_environment(tmp_path_factory.mktemp("plain") / "venv")
    install_metadata(made)
    return made


@pytest.fixture(scope="session")
def autostarted(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment after ``lightning-patches autostart enable``; tests must not change it."""
    made = make_environment(tmp_path_factory.mktemp("autostarted") / "venv")
    install_metadata(made)
    status, output = made.run("python", "-m", "lightning_patches", "autostart", "enable")
    assert status == 0, output
    return made


@pytest.fixture
def fresh_environment(tmp_path: Path) -> Environment:
    """An environment that the test may change."""
    return make_environment(tmp_path / "venv")


@pytest.fixture(params=WAYS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    name = "autostarted" if request.param == "autostart" else "environment"
    return World(request.param, request.getfixturevalue(name), tmp_path)
