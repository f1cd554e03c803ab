"""Makes the virtual environment in which the demo and the tests run: once, from ``setup.cfg``."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
TORCH = "torch==2.13.0"
"""Asked for alone and exactly: the simulated CUDA device is built against this release's headers."""


TAKES = (
    "This takes a few minutes and about 1.3 GB of disk once: torch (about 200 MB to download, the build for CPUs) and "
    "what the tests import. Old releases of Lightning, 7 to 14 MB each on disk, are fetched when they are needed."
)


def run(command: list[str], **more: Any) -> int:
    """Run a command to its end. After Ctrl-C it has ten seconds to end by itself, and nothing of it is left running.

    Raises:
        KeyboardInterrupt: by Ctrl-C, when the command has ended.
    """
    process = subprocess.Popen(command, start_new_session=True, **more)
    try:
        return process.wait()
    except BaseException:
        for number, patience in ((signal.SIGINT, 10), (signal.SIGTERM, 3), (signal.SIGKILL, 3)):
            try:
                os.killpg(process.pid, number)
                process.wait(patience)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        raise


def enter() -> None:
    """Go on in the virtual environment: start this program again with its Python, unless it is this one. Where there is
    none, it is made."""
    if Path(sys.prefix).resolve() != VENV.resolve():
        python = VENV / "bin" / "python"
        if not python.exists():
            set_up()
        os.execv(python, [str(python), *sys.argv])


def recipe(root: Path) -> str:
    """What an environment for a checkout is made from."""
    return hashlib.sha256(f"{root} {TORCH}\n".encode() + (root / "setup.cfg").read_bytes()).hexdigest()


def set_up(venv: Path = VENV, torch_index: str = "") -> Path:
    """Make the virtual environment, unless it is there and up to date, and install into it.

    Args:
        venv: its directory.
        torch_index: package index to take torch from; empty for pip's own.

    Returns:
        Its Python.

    Raises:
        SystemExit: something could not be installed; pip's message is on the terminal.
    """
    python = venv / "bin" / "python"
    stamp = venv / "lightning-patches"
    if python.exists() and stamp.exists() and stamp.read_text() == recipe(ROOT):
        return python
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    print(TAKES, flush=True)
    if not python.exists():
        print(f"Making {venv}", flush=True)
        if subprocess.run([sys.executable, "-m", "venv", str(venv)], env=environment).returncode:
            sys.exit("No virtual environment could be made. On Debian and Ubuntu, `apt install python3-venv` helps.")
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    # torch first and alone: nothing that comes later has a say in which torch it is.
    for command in (
        [*pip, TORCH, *(["--index-url", torch_index] if torch_index else [])],
        [*pip, "--editable", f"{ROOT}[test]"],
    ):
        print("$", " ".join(command), flush=True)
        if run(command, env=environment):
            sys.exit("The installation failed; see pip's message above.")
    stamp.write_text(recipe(ROOT))
    return python
