"""Free ports for tests."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from pathlib import Path

_FIRST, _LAST = 16000, 28999
"""Below the range for outgoing connections, one of which might take the port before a test listens on it."""


def free_port() -> int:
    """Return a free port that no other test of this user gets for a long time."""
    path = Path(tempfile.gettempdir(), f"lightning-patches-tests-{os.getuid()}-port")
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        port = int(file.read() or _FIRST)
        for _ in range(_FIRST, _LAST):
            port = port + 1 if _FIRST <= port < _LAST else _FIRST
            if _is_free(port):
                file.seek(0)
                file.truncate()
                file.write(str(port))
                return port
    raise OSError(f"no port from {_FIRST} to {_LAST} is free")


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("", port))
        except OSError:
            return False
    return True
