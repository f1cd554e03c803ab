"""The secret of a job with ranks on several nodes, and the port that is derived from it.

The user sets the secret in a variable, or rank zero creates one and publishes it in torch's store. Everyone who can
connect to ``MASTER_PORT`` can read the store.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import os
import secrets
import socket
import sys
import threading
from typing import Any, Optional

from lightning_patches.ranks import _node
from lightning_patches.ranks.hang._identity import Identity
from lightning_patches.ranks.hang._registry import THREADS

VARIABLE = "LIGHTNING_PATCHES_HANG_SECRET"
PORT_VARIABLE = "LIGHTNING_PATCHES_HANG_PORT"
SHORTEST = 16
_SECONDS = 3.0
_LONGEST_PAUSE = 10.0


def of_user() -> Optional[bytes]:
    """Return the secret that the user set; ``None`` if it is not set or too short."""
    text = os.environ.get(VARIABLE, "").strip()
    return text.encode("utf-8", "surrogateescape") if len(text) >= SHORTEST else None


def ports(secret: bytes, identity: Identity) -> list[int]:
    """Return the ports on which rank zero may listen, best first. They are below the range of outgoing connections."""
    own = port_of_user()
    if own is not None:
        return [own]
    digest = hmac.new(secret, f"port of {identity.key}".encode(), hashlib.sha256).digest()
    return [10000 + int.from_bytes(digest[i : i + 4], "big") % 20000 for i in (0, 4, 8, 12)]


def port_of_user() -> Optional[int]:
    """Return the port that the user set; ``None`` if it is not set or invalid."""
    return as_port(os.environ.get(PORT_VARIABLE, "").strip())


def as_port(text: str) -> Optional[int]:
    return int(text) if text.isdecimal() and text.isascii() and 0 < int(text) < 65536 else None


class Exchange:
    """Exchange of rank zero's secret through torch's store, as soon as the store exists.

    Args:
        identity: the identity of this rank.

    ``secret`` is ``None`` until the exchange is complete. In rank zero, it is complete if other ranks can read the
    secret.
    """

    def __init__(self, identity: Identity) -> None:
        self.secret = of_user()
        self._name = f"lightning_patches/hang/{_node.digest(identity.key)}"
        self._made = secrets.token_bytes(32) if identity.rank == 0 else None
        self._stopped = threading.Event()
        self._thread: Optional[threading.Thread] = None
        if self.secret is None:
            self._thread = threading.Thread(target=self._run, name=f"{THREADS} store", daemon=True)
            self._thread.start()

    def stop(self, wait: bool = True) -> None:
        """Stop the exchange.

        Args:
            wait: wait until no call into torch is running, since such a call would crash at the interpreter's exit.
        """
        self._stopped.set()
        if wait and self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(3 * _SECONDS)

    def _run(self) -> None:
        pause = 1.0
        while not self._stopped.is_set() and self.secret is None:
            try:
                self.secret = self._ask()
            except Exception:  # not a TCP store, or a store that is shutting down
                pass
            self._stopped.wait(pause)
            pause = min(1.05 * pause, _LONGEST_PAUSE)

    def _ask(self) -> Optional[bytes]:
        address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT", "")
        distributed: Any = getattr(sys.modules.get("torch"), "distributed", None)
        make = getattr(distributed, "TCPStore", None)
        if make is None or not address or not port.isdecimal():
            return None
        socket.create_connection(
            (address, int(port)), timeout=_SECONDS
        ).close()  # torch would wait for the store, and warn
        if self._stopped.is_set():
            return None
        timeout = datetime.timedelta(seconds=_SECONDS)
        store = make(address, int(port), is_master=False, wait_for_workers=False, timeout=timeout)
        if self._made is not None:
            if not store.check([f"{self._name}/asked"]):
                return None
            store.set(self._name, self._made.hex())
            return self._made
        store.set(f"{self._name}/asked", "1")
        return bytes.fromhex(store.get(self._name).decode()) if store.check([self._name]) else None
