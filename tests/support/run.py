"""Run programs without the tests' variables, in their own process groups, so that all their ranks can be ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Optional

ROOT = Path(__file__).resolve().parents[2]
DROPPED = re.compile(
    "(SLURM|TORCHELASTIC|PET|OMPI|PMI|_LIGHTNING_PATCHES)_.*|LIGHTNING_PATCHES|PYTHON(PATH|WARNINGS|DONTWRITEBYTECODE)"
    "|((LOCAL|GROUP|NODE)_)?RANK|(LOCAL_)?WORLD_SIZE|MASTER_(ADDR|PORT)|(FORCE|NO)_COLOR"
)
"""Variables of the tests and of launchers, which no program gets."""


def variables(*path: str | Path, **more: str) -> dict[str, str]:
    """Return the variables of a user's shell, with these directories and the checkout on ``PYTHONPATH``."""
    kept = {name: value for name, value in os.environ.items() if not DROPPED.fullmatch(name)}
    return {**kept, "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT))), **more}


def python(
    code: str, *path: Path, options: Iterable[str] = (), timeout: float = 200, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run Python code with ``more`` variables."""
    return subprocess.run(
        [sys.executable, *options, "-c", code], env=variables(*path, PYTHONDONTWRITEBYTECODE="1", **more), cwd="/",
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip


def check(code: str, *path: Path, **how: Any) -> str:
    """Run Python code that must succeed, and return what it prints.

    Raises:
        AssertionError: it did not.
    """
    result = python(code, *path, **how)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def execute(
    command: list[str],
    environment: dict[str, str],
    timeout: float,
    cwd: Optional[str | Path] = None,
    patience: Optional[float] = None,
) -> tuple[int, str]:
    """Run a command in its own process group; kill the whole group when it ends or runs out of time.

    Args:
        command: the program and its arguments.
        environment: its environment.
        timeout: seconds, after which the status is 124.
        cwd: its working directory.
        patience: seconds to wait for the other processes of the group; by default 20 after a success, and else 0.
    """
    with tempfile.TemporaryFile(mode="w+", errors="replace") as output:
        process = start(command, output, environment, cwd)
        status = 124
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            pass
        finally:
            end(process.pid, (0 if status else 20) if patience is None else patience)
            process.wait()
        output.seek(0)
        return status, output.read()


def start(
    command: list[str], output: IO[Any], environment: Optional[dict[str, str]] = None, cwd: Optional[str | Path] = None
) -> subprocess.Popen[bytes]:
    """Start a program without input in a new process group, whose number is the program's pid.

    Args:
        command: the program and its arguments.
        output: file for its output. Ranks that outlive the program would keep a pipe open.
        environment: its environment; that of this process if ``None``.
        cwd: its working directory.
    """
    return subprocess.Popen(
        command, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip


def end(group: int, patience: float = 0) -> None:
    """Kill the remaining processes of a group.

    Args:
        group: number of the group.
        patience: seconds to wait for them first, since Lightning's main process does not wait for its ranks.
    """
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and lives(group):
        time.sleep(0.01)
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def lives(group: int) -> bool:
    """True if a process of the group runs. Zombies do not count."""
    for name in filter(str.isdigit, os.listdir("/proc")):  # a glob would fail if a file disappears
        try:
            state, _, of_group = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(of_group) == group and state not in "ZX":
            return True
    return False
