"""Remove features from this process that other systems, or Pythons for an older glibc, lack.

A program calls :func:`become` before it imports the package. The standard library, torch and Lightning's other
requirements are imported before and keep the features. ``os.name`` stays, since ``pathlib`` would otherwise create
paths of the other system.
"""

from __future__ import annotations

import builtins
import importlib
import os
import platform
import signal
import sys
import sysconfig
from typing import Any, Iterable

OLD_GLIBC = (
    *("os.memfd_create", "os.pidfd_open", "os.posix_fadvise", "os.eventfd", "os.getrandom", "os.copy_file_range"),
    *("os.preadv", "os.pwritev", "os.splice"),
)
MACOS = (
    *OLD_GLIBC,
    *("os.sched_getaffinity", "os.sched_setaffinity", "os.waitid", "os.P_PID", "os.CLD_EXITED", "os.posix_fallocate"),
    *("signal.SIGRTMIN", "signal.SIGRTMAX", "signal.sigtimedwait", "select.epoll"),
    *("socket.AF_NETLINK", "socket.SO_PEERCRED", "time.CLOCK_BOOTTIME"),
    *("/proc", "/dev/shm", "/run", "/sys"),
)
WINDOWS = (
    *MACOS,
    *("os.register_at_fork", "os.fork", "os.forkpty", "os.getuid", "os.geteuid", "os.getgid", "os.getegid"),
    *("os.getgroups", "os.getpgid", "os.getpgrp", "os.getsid", "os.setsid", "os.killpg", "os.sysconf", "os.statvfs"),
    *("os.WIFSIGNALED", "os.WTERMSIG", "os.mkfifo", "os.chown", "os.fchown", "os.pread", "os.pwrite", "os.nice"),
    *("os.O_NOFOLLOW", "os.O_CLOEXEC", "os.O_NONBLOCK", "os.O_DIRECTORY", "os.getloadavg", "os.ctermid"),
    *("signal.SIGHUP", "signal.SIGKILL", "signal.SIGUSR1", "signal.SIGUSR2", "signal.SIGQUIT", "signal.SIGSTOP"),
    *("signal.SIGCONT", "signal.SIGALRM", "signal.SIGPIPE", "signal.SIGCHLD", "signal.alarm", "signal.setitimer"),
    *("signal.pthread_kill", "signal.pthread_sigmask", "socket.AF_UNIX", "socket.socketpair", "select.poll"),
    *("time.clock_gettime", "time.clock_gettime_ns", "time.CLOCK_MONOTONIC", "faulthandler.register"),
    *("fcntl", "grp", "pwd", "resource", "termios", "tty", "syslog"),
)
SYSTEMS = {"old glibc": OLD_GLIBC, "macos": MACOS, "windows": WINDOWS}
_PLATFORMS = {"macos": ("darwin", "Darwin"), "windows": ("win32", "Windows")}
_OF_FILES = (
    *((builtins, "open"), (os, "open"), (os, "listdir"), (os, "scandir"), (os, "readlink"), (os, "access")),
    *((os, "stat"), (os, "lstat"), (os, "mkdir")),
)


def become(system: str, *modules: str) -> None:
    """Remove the features that ``system`` lacks; nothing if it is "".

    Args:
        modules: modules to import before.
    """
    for module in ("asyncio", "ctypes.util", "multiprocessing.spawn", "random", "subprocess", "tempfile", *modules):
        importlib.import_module(module)
    sysconfig.get_config_vars()
    platform.uname()
    take_away(SYSTEMS[system] if system else ())
    if system in _PLATFORMS:
        sys.platform, name = _PLATFORMS[system]
        platform.system = lambda: name
    if system == "windows":
        signal.valid_signals = lambda: {signal.SIGABRT, signal.SIGINT, signal.SIGTERM}


def take_away(names: Iterable[str]) -> None:
    """Remove directories (``/proc``), modules (``fcntl``) or attributes of modules (``os.fork``)."""
    directories = []
    for name in names:
        module, _, attribute = name.rpartition(".")
        if name.startswith("/"):
            directories.append(name)
        elif module:
            importlib.import_module(module).__dict__.pop(attribute, None)
        else:
            sys.modules[name] = None  # type: ignore[assignment]
    for module, name in _OF_FILES if directories else ():
        setattr(module, name, _without(getattr(module, name), directories))


def _without(original: Any, directories: list[str]) -> Any:
    def call(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
        text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
        if any(f"{text}/".startswith(f"{one}/") for one in directories):
            if original.__name__ == "access":
                return False
            raise FileNotFoundError(2, "No such file or directory", path)
        return original(path, *args, **kwargs)

    call.__name__ = original.__name__
    return call
