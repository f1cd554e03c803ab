"""Ends the process group of a program that has ended, with the ranks that it started."""

import os
import signal
import time
from pathlib import Path


def end(group: int, patience: float = 0) -> None:
    """Kill what is left of a process group.

    Args:
        group: its number.
        patience: seconds that the others get to end by themselves: Lightning's main process does not wait for the
            ranks that it started, and may be quicker than they are.
    """
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and _lives(group):
        time.sleep(0.01)
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _lives(group: int) -> bool:
    """Whether a process of the group runs; one that is dead and waits for its parent to notice does not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group = stat.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(of_group) == group and state not in "ZX":
            return True
    return False
