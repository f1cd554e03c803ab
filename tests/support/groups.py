"""Programs in process groups of their own, so that no rank that they have started is left running."""

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
    """Start a program that reads nothing; the number of its process group is its own.

    Args:
        command: the program and its arguments.
        output: file that takes all that it says; a pipe would be kept open by ranks that outlive it.
        environment: all of its variables; those of this process if ``None``.
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
    """Kill what is left of a process group.

    Args:
        group: its number.
        patience: seconds that the others get to end by themselves: Lightning's main process does not wait for the
            ranks that it started, and may be quicker than they are.
    """
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and lives(group):
        time.sleep(0.01)
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def lives(group: int) -> bool:
    """Whether a process of the group runs; one that is dead and waits for its parent to notice does not."""
    for name in filter(
        str.isdigit, os.listdir("/proc")
    ):  # a glob looks at what it finds, and fails when that is gone meanwhile
        try:
            state, _, of_group = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(of_group) == group and state not in "ZX":
            return True
    return False
