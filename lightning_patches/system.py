"""What this system has of what not every system has.

Windows and macOS lack much that Linux has, and a Python that was built against an older glibc lacks some. Whoever needs
such a thing asks here, when it is needed and not at import.
"""

from __future__ import annotations

import importlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

WATCH = (
    "/proc/self/stat",
    "os.getsid",
    "os.getuid",
    "os.sysconf",
    "select.poll",
    "signal.SIGKILL",
    "socket.AF_UNIX",
)
"""What the watch for hangs needs."""
TURNS = ("fcntl.flock", "os.O_NOFOLLOW", "os.getuid", "os.pread")
"""What ranks need to take turns."""


def lacks(names: tuple[str, ...]) -> str:
    """The first of these that this system does not have, "" if it has all: a file, or an attribute of a module."""
    return next((name for name in names if not _has(name)), "")


def _has(name: str) -> bool:
    try:
        if name.startswith("/"):
            open(name).close()
            return True
        module, _, attribute = name.rpartition(".")
        return hasattr(importlib.import_module(module), attribute)
    except (OSError, ImportError):
        return False


def after_fork(call: Callable[[], None]) -> None:
    """Have a function called in each forked child, where processes can be forked."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)
