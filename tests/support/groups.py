"""Run programs in their own process groups, so that all their ranks can be ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, Any, Optional


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
        command,
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


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
