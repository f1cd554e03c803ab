"""What the processes of one user share on one node: a directory that nobody else can write to, and a name for the node.

The directory does not depend on ``TMPDIR``, which launchers may set to another one for each rank.
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
"""As many names are tried in each place: whoever wants to keep us out has to take them all."""
REPORTS = "reports"
_LEAST_FREE = 1 << 16
"""Bytes."""
_told: set[str] = set()
_FIRST_NAMESPACE = "pid:[4026531836]"  # the kernel's own number for it


def directory(*below: str) -> str:
    """A directory that belongs to this user alone, made if it is not there: what stands in it is trusted.

    Where somebody else has taken its name, or no room is left, the next name or place is taken, and that is said once.
    All processes of this user on this node find the same one, or none. Only a node without any of ``BASES`` has it in
    ``TMPDIR``.

    Args:
        below: directories within it.

    Raises:
        OSError: it can't be made anywhere.
        PermissionError: in each place it is somebody else's, or others can write to it.
    """
    refused: Optional[OSError] = None
    for base in list(filter(_is_usable, BASES)) or [tempfile.gettempdir()]:
        names = [f"lightning_patches-{os.getuid()}{f'-{number}' if number else ''}" for number in range(_NAMES)]
        # One that is there comes first: a name before it may have become free since others have taken it.
        for place in sorted((os.path.join(base, name) for name in names), key=os.path.exists, reverse=True):
            try:
                path = _own(place, below)
            except OSError as error:
                refused = refused or error
                continue
            if refused is not None and str(refused) not in _told:
                _told.add(str(refused))
                notices.notice(f"{refused} {path} is used instead.", urgent=True)
            return path
    raise refused or FileNotFoundError(f"no directory can be made in any of {', '.join(BASES)}")


def _is_usable(base: str) -> bool:
    return os.path.isdir(base) and os.access(base, os.W_OK)


def _own(path: str, below: Sequence[str]) -> str:
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
    """16 digits that tell this node from others. Containers are nodes of their own, even with equal host names."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            parts.append(file.read())
        parts += [os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "net")]
    return digest("\n".join(parts))


def is_container() -> bool:
    """Whether this process sees the processes of its own PID namespace only."""
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self/ns/pid") != _FIRST_NAMESPACE
    return False


def digest(text: str) -> str:
    """16 hexadecimal digits, for names of files."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
