"""Makes the virtual environment in which the demo and the tests run: ``.venv``, once, from ``setup.cfg``."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TORCH = "torch==2.13.0"
"""Asked for alone and exactly: the simulated CUDA device is built against this release's headers."""


def python(venv: Path = ROOT / ".venv") -> Path:
    """The interpreter of a virtual environment that holds everything the tests import; made or brought up to date.

    Raises:
        SystemExit: the installation failed; pip's own words are on the terminal.
    """
    interpreter = venv / "bin" / "python"
    stamp = venv / ".lightning-patches"
    wanted = hashlib.sha256(f"{TORCH}\n{(ROOT / 'setup.cfg').read_text()}".encode()).hexdigest()
    if interpreter.exists() and stamp.exists() and stamp.read_text() == wanted:
        return interpreter
    print(f"setting up {venv} (torch is a large download; this happens once)", flush=True)
    if not interpreter.exists():
        _run([sys.executable, "-m", "venv", str(venv)])
    install = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*install, TORCH])
    _run([*install, "--editable", f"{ROOT}[test]", TORCH])
    stamp.write_text(wanted)
    return interpreter


def _run(command: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    status = subprocess.run(command, env=environment).returncode
    if status:
        raise SystemExit(f"set-up failed with status {status}: {' '.join(command)}")
