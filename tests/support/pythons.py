"""The Pythons of this machine: those on the path and pyenv's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple, Optional

from tests.support import variants  # noqa: F401  puts scripts/ on the path

import _releases  # isort: skip

MINORS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.14t", "3.15")
"""The supported Python versions, and the next ones; ``t`` is built without the GIL."""
NEEDED = ("wrapt", "packaging", "pytest", "pytest-timeout")
"""The requirements of the package and of its tests without torch."""
_TORCH = "import torch, lightning_utilities, torchmetrics, wrapt, packaging"


class Found(NamedTuple):
    """A suitable interpreter, or ``None`` and the reason."""

    python: Optional[str]
    reason: str = ""


@cache
def find(minor: str) -> Optional[str]:
    """Find an interpreter of a minor version."""
    if minor == "{}.{}".format(*sys.version_info):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    # Prefer pyenv's own directory, since a command on PATH may be a pyenv shim of another version.
    kept = sorted(pyenv.glob(f"{minor}.*/bin/python"))
    free_threaded = [path for path in kept if path.parent.parent.name.endswith("t")]
    kept = free_threaded if minor.endswith("t") else [path for path in kept if path not in free_threaded]
    return str(kept[-1]) if kept else shutil.which(f"python{minor}")


@cache
def with_packages(minor: str) -> Found:
    """Return a virtual environment of a Python with the package's requirements, from the tests' cache."""
    base = find(minor)
    if base is None:
        return Found(None, f"no Python {minor} on this machine")
    directory = _releases.cache_dir() / "pythons" / minor
    python, finished = directory / "bin" / "python", directory / "finished"
    with _releases.locked_directory(directory.parent):
        if not finished.exists():
            shutil.rmtree(directory, ignore_errors=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            for command in ([base, "-m", "venv", str(directory)], [*pip, *NEEDED]):
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
                    return Found(None, f"no environment for Python {minor}: {last}")
            finished.touch()
    return Found(str(python))


@cache
def with_torch(minor: str) -> Found:
    """Find an interpreter of a Python version with torch and Lightning's requirements."""
    kept = sorted((_releases.cache_dir() / "stacks").glob("torch-*/bin/python"))
    for python in [find(minor), *map(str, kept)]:
        if python is None:
            continue
        program = f"{_TORCH}, sys; print('{{}}.{{}}'.format(*sys.version_info))"
        done = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=120)
        if done.returncode == 0 and done.stdout.strip() == minor.rstrip("t"):
            return Found(python)
    return Found(None, f"no torch for Python {minor} on this machine")


@cache
def with_dependencies() -> tuple[str, ...]:
    """Return an interpreter with the package's requirements for each minor version from 3.9 on, this one first."""
    others = [minor for minor in MINORS if minor not in ("3.8", "{}.{}".format(*sys.version_info))]
    return (sys.executable, *filter(None, (with_packages(minor).python for minor in others)))
