"""Features that not every operating system has, reading of regular files, and commands for helper processes.

Windows, macOS and a Python that was built with an older glibc lack some features of Linux. Code that needs such a
feature must check for it when it uses it, not when it is imported.
"""

from __future__ import annotations

import errno
import importlib
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Callable

WATCH = ("/proc/self/stat", "os.getsid", "os.getuid", "os.sysconf", "select.poll", "signal.SIGKILL", "socket.AF_UNIX")
"""Features that the hang watch needs."""
TURNS = ("fcntl.flock", "os.O_NOFOLLOW", "os.getuid", "os.pread")
"""Features that ``rank_by_rank`` needs."""


def lacks(names: tuple[str, ...]) -> str:
    """Return the first name that this system does not have; "" if it has all.

    Args:
        names: files (``"/proc/self/stat"``) and attributes of modules (``"os.getuid"``).
    """
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
    """Register a function for each forked child process. Does nothing on a system without fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def open_regular(path: str) -> BinaryIO:
    """Open a regular file for reading. Reading a pipe or a device may wait for ever or never end.

    Raises:
        OSError: the file does not exist, or it is a directory, a device or a pipe.
    """
    flags = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY", "O_CLOEXEC"))
    try:
        descriptor = os.open(path, flags)
    except ValueError as error:  # a null byte in the name
        raise OSError(0, str(error)) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(0, "it is not a regular file")


def read_regular(path: str, most: int) -> bytes:
    """Read a regular file of at most ``most`` bytes.

    Raises:
        OSError: the file does not exist, is not a regular file, or is larger.
    """
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(0, f"it is larger than {in_bytes(most)}")
    return content


def in_bytes(count: int) -> str:
    """Return a size in words, such as ``"16 MB"``."""
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} KB"


def installed_version(distribution: str) -> str:
    """Return the version that a distribution's metadata states, ``"unknown"`` if it states none, "" without metadata.

    ``importlib.metadata`` raises errors of many kinds for metadata that are not UTF-8 or not complete.
    """
    from importlib import metadata  # takes longer to import than all of this package

    try:
        return metadata.version(distribution) or "unknown"
    except metadata.PackageNotFoundError:
        return ""
    except Exception:
        return "unknown"


_WITHOUT_DIRECTORY = "import sys; del sys.path[0]\n"
_RUN_MODULE = "import runpy; runpy.run_module({!r}, run_name='__main__', alter_sys=True)"


def python_command(option: str, program: str, *arguments: str) -> list[str]:
    """Return the command that runs this Python without importing from the working directory.

    If another user wrote that directory, it may have a ``pip/`` or ``torch/``, which Python would import first. Option
    ``-I`` is not used, since it also ignores ``PYTHONPATH`` and the user's site-packages, where pip may be installed.

    Args:
        option: ``"-m"`` or ``"-c"``.
        program: name of the module, or the code.
        arguments: its arguments, ``sys.argv[1:]``.
    """
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", option, program, *arguments]
    code = _RUN_MODULE.format(program) if option == "-m" else program
    return [sys.executable, "-c", _WITHOUT_DIRECTORY + code, *arguments]
