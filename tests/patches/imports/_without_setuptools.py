"""An environment without setuptools, as Python 3.12 and later create it, and otherwise with this one's packages."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

_LEFT_OUT = ("setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence.pth")


def make(directory: Path) -> str:
    """Make a virtual environment in ``directory`` whose packages are links to those of this environment.

    Returns:
        Its Python.
    """
    venv.EnvBuilder(symlinks=True, with_pip=False).create(directory)
    python = directory / "bin" / "python"
    own = sysconfig.get_paths(vars={"base": str(directory), "platbase": str(directory)})["purelib"]
    for key in ("purelib", "platlib"):
        for entry in Path(sysconfig.get_paths()[key]).iterdir():
            link = Path(own) / entry.name
            if not entry.name.startswith(_LEFT_OUT) and not link.is_symlink():
                link.symlink_to(entry)
    return str(python)


def go_there() -> None:
    """Restart the calling program in such an environment, and exit with its status. Returns there.

    Only the interpreter changes; arguments, variables and working directory stay.
    """
    if find_spec("setuptools") is None:
        return
    python = make(Path(os.environ.get("SCENARIO_OUT", ".")) / "environment")
    sys.exit(subprocess.run([python, *sys.argv], check=False).returncode)
