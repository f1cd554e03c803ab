"""Python environments of our own, in which each way to activate the patches can be had without the others."""

from __future__ import annotations

import configparser
import functools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import pytest

from tests.support.arms import ROOT, Arm, environment_of, execute

OUTSIDE = ROOT / "lightning_patches" / "outside"
sys.path.append(str(OUTSIDE))

PROGRAMS = Path(__file__).parent / "programs"
RELEASE = Arm("lightning", "2.3.3")
WAYS = ("import", "run", "autostart")
_LAUNCHERS = ("SLURM_", "TORCHELASTIC_", "PET_", "OMPI_", "PMI_", "_LIGHTNING_PATCHES")


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
        variables = dict(_release() if lightning else os.environ)
        path = variables.pop("PYTHONPATH", "").split(os.pathsep)
        for name in list(variables):
            if name.startswith(_LAUNCHERS) or name in ("LIGHTNING_PATCHES", "PYTHONDONTWRITEBYTECODE"):
                del variables[name]
        if lightning:
            variables["PYTHONPATH"] = os.pathsep.join(entry for entry in path if entry != str(ROOT))
        variables["PATH"] = f"{self.directory / 'bin'}{os.pathsep}{variables['PATH']}"
        return {**variables, **more}

    def run(
        self, *command: str, timeout: float = 60, cwd: Optional[Path] = None, lightning: bool = False, **more: str
    ) -> tuple[int, str]:
        """Run a command of this environment: exit status, and stdout with stderr. No Lightning unless asked for."""
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
    outer = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (environment.site / "0_checkout.pth").write_text(f"{ROOT}\n{OUTSIDE}\n")
    (environment.site / "1_outer.pth").write_text("".join(f"{path}\n" for path in outer))
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
    """What pip would leave in the site directory besides the package: the entry points, from setup.cfg."""
    settings = configparser.ConfigParser()
    settings.optionxform = str  # type: ignore[assignment, method-assign]
    settings.read(ROOT / "setup.cfg")
    directory = environment.site / "lightning_patches-0.0.0.dist-info"
    directory.mkdir()
    (directory / "METADATA").write_text("Metadata-Version: 2.1\nName: lightning-patches\nVersion: 0.0.0\n")
    (directory / "RECORD").write_text("lightning_patches-0.0.0.dist-info/RECORD,,\n")
    groups = settings["options.entry_points"].items()
    text = "\n".join(f"[{group}]{lines}" for group, lines in groups)
    (directory / "entry_points.txt").write_text(f"{text}\n")
    return directory


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
