"""A private directory that the processes of one user share on a node, and an id of the node.

The directory does not depend on ``TMPDIR``, since launchers may set a different ``TMPDIR`` for each rank.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import stat
import tempfile
from functools import lru_cache
from typing import Optional, Sequence

from lightning_patches import notices

_OF_USER = f"/run/user/{os.getuid()}" if hasattr(os, "getuid") else None
BASES = tuple(filter(None, ("/dev/shm", os.environ.get("XDG_RUNTIME_DIR"), _OF_USER, "/tmp")))
_NAMES = 8
"""Number of directory names to try in each place, since other users can occupy names."""
REPORTS = "reports"
_LEAST_FREE = 1 << 16
"""Free space in bytes that a place must have."""
_warned: set[str] = set()
_FIRST_NAMESPACE = "pid:[4026531836]"  # the kernel's constant for the initial PID namespace


def directory(*below: str) -> str:
    """Return a directory that only this user can write to. Create it if needed.

    If another user has taken the name, or the place is full, the function uses the next name or place, and warns once.
    All processes of this user on this node get the same directory, or an error. ``TMPDIR`` is used only if none of
    ``BASES`` is usable.

    Args:
        below: names of nested directories to create in the directory.

    Raises:
        OSError: the directory can't be created anywhere.
        PermissionError: in each place, the directory belongs to another user, or others can write to it.
    """
    refused: Optional[OSError] = None
    for base in list(filter(_is_usable, BASES)) or [tempfile.gettempdir()]:
        names = [f"lightning_patches-{os.getuid()}{f'-{number}' if number else ''}" for number in range(_NAMES)]
        # Prefer a directory that exists: an earlier name may have become free after other ranks chose this one.
        for place in sorted((os.path.join(base, name) for name in names), key=os.path.exists, reverse=True):
            try:
                path = _private_directory(place, below)
            except OSError as error:
                refused = refused or error
                continue
            if refused is not None and str(refused) not in _warned:
                _warned.add(str(refused))
                notices.notice(f"{refused} {path} is used instead.", urgent=True)
            return path
    raise refused or FileNotFoundError(f"no directory can be created in any of {', '.join(BASES)}")


def _is_usable(base: str) -> bool:
    return os.path.isdir(base) and os.access(base, os.W_OK)


def _private_directory(path: str, below: Sequence[str]) -> str:
    if shutil.disk_usage(os.path.dirname(path)).free < _LEAST_FREE:
        raise OSError(f"{os.path.dirname(path)} is full.")
    for name in ("", *below):
        path = os.path.join(path, name) if name else path
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise PermissionError(f"{path} must be a directory that only this user can write to. Remove it.")
    return path


@lru_cache(maxsize=None)
def node_id() -> str:
    """Return 16 hexadecimal digits that identify this node. A container counts as a separate node."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            parts.append(file.read())
        parts += [os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "net")]
    return digest("\n".join(parts))


def is_container() -> bool:
    """True if this process runs in its own PID namespace, and so can't see the node's other processes."""
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self/ns/pid") != _FIRST_NAMESPACE
    return False


def digest(text: str) -> str:
    """Return 16 hexadecimal digits for use in file names."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
