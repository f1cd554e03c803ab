"""Messages between ranks: signed lines of JSON, over a socket whose two ends know the same secret.

Messages of an unauthenticated peer are not parsed. Until the peer proves that it knows the secret, only a few bytes of
a fixed form are compared, and the connection is closed if they differ. After that, each line has a signature of its
number and its text, so that an attacker between the two ends can't add, repeat, change or drop lines.
:mod:`~lightning_patches.ranks.hang._messages` validates the content of a line. Lines are not encrypted.

    hub:   lightning_patches 2 NONCE
    rank:  NONCE PROOF
    hub:   PROOF
    both:  SIGNATURE {"t": ...}
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import json
import os
import select
import socket
import struct
import threading
import time
import weakref
from typing import Any, Optional, Union

from lightning_patches.ranks.hang import _messages
from lightning_patches.ranks.hang._messages import Message

LONGEST_LINE = 1 << 20
_LONGEST_GREETING = 160
_BANNER = b"lightning_patches 2 "
LOOPBACK = ("127.0.0.1", "::1")
HELLO_DEADLINE = 5.0
"""Seconds for the peer to prove that it knows the secret."""


_open: weakref.WeakSet[Connection] = weakref.WeakSet()


def inodes() -> set[int]:
    """Return the inodes of the watch's connections in this process. Their traffic does not count as work."""
    found = set()
    for connection in list(_open):
        with contextlib.suppress(OSError, ValueError):
            found.add(os.fstat(connection.fileno()).st_ino)
    return found


class Connection:
    """One end of a connection. No method blocks for longer than ``patience``.

    Args:
        sock: a connected socket.
        secret: the secret of both ends.
        as_hub: True for the end that accepted the connection.

    ``open`` is True while the connection is usable, ``known`` after the peer proved that it knows the secret, and
    ``hung_up`` after the peer closed the connection.
    """

    patience = 1.0

    def __init__(self, sock: socket.socket, secret: bytes, as_hub: bool) -> None:
        self._socket, self._secret, self._as_hub = sock, secret, as_hub
        self._buffer = b""
        self._nonce = os.urandom(16).hex().encode()
        self._nonce_of_hub = self._nonce if as_hub else b""
        self._session = b""
        self._sent = self._received = 0
        self._sending = threading.Lock()
        self.open, self.known, self.hung_up = True, False, False
        self.since = time.monotonic()
        sock.setblocking(False)
        _open.add(self)
        if as_hub and not _is_same_user(sock):
            self.close()
        elif as_hub:
            self._write(_BANNER + self._nonce + b"\n")

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> bool:
        """Send a message and return True. If that fails, close the connection and return False."""
        if not (self.open and self.known):
            return False
        text = json.dumps(message).encode()
        with self._sending:
            signature = self._sign(self._as_hub, self._sent, text)
            self._sent += 1
            return self._write(signature + b" " + text + b"\n")

    def receive(self) -> list[Message]:
        """Read the socket once and return the complete messages. Close the connection after an invalid message."""
        try:
            data = self._socket.recv(1 << 16) if self.open else b""
            if not data:
                self.hung_up = self.open
                self.close()
            self._buffer += data
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.close()
        messages: list[Message] = []
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            if not self.known:
                if not self._greet(line):
                    self.close()
                    break
                continue
            message = self._read(line)
            if message is None:
                self.close()
                break
            messages.append(message)
        if len(self._buffer) > (LONGEST_LINE if self.known else _LONGEST_GREETING):
            self.close()
        return messages

    def wait(self, seconds: float) -> bool:
        """Wait until data arrives, at most a number of seconds. Return True if there is data."""
        with contextlib.suppress(OSError, ValueError):
            return self.open and _ready(self._socket, select.POLLIN, seconds)
        return False

    def close(self) -> None:
        self.open, self._buffer = False, b""
        _open.discard(self)
        with contextlib.suppress(OSError):
            self._socket.close()

    # ---------------------------------------------------------------- greeting

    def _greet(self, line: bytes) -> bool:
        """Handle a line of the greeting. Return False if it is invalid, or does not prove that the peer has the
        secret."""
        if len(line) > _LONGEST_GREETING:
            return False
        if self._as_hub:
            nonce, _, proof = line.partition(b" ")
            if not _is_nonce(nonce) or not hmac.compare_digest(proof, self._prove(b"rank", nonce)):
                return False
            self._session, self.known = self._prove(b"session", nonce), True
            return self._write(self._prove(b"hub", nonce) + b"\n")
        if not self._nonce_of_hub:
            self._nonce_of_hub = line[len(_BANNER) :]
            is_banner = line.startswith(_BANNER) and _is_nonce(self._nonce_of_hub)
            if not is_banner or not _is_same_user(self._socket):  # the owner is unknown before the hub accepts
                return False
            return self._write(self._nonce + b" " + self._prove(b"rank", self._nonce) + b"\n")
        if not hmac.compare_digest(line, self._prove(b"hub", self._nonce)):
            return False
        self._session, self.known = self._prove(b"session", self._nonce), True
        return True

    def _prove(self, what: bytes, nonce_of_rank: bytes) -> bytes:
        text = b" ".join((what, self._nonce_of_hub, nonce_of_rank))
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest().encode()

    # ---------------------------------------------------------------- lines

    def _sign(self, by_hub: bool, number: int, text: bytes) -> bytes:
        who = b"hub" if by_hub else b"rank"
        return hmac.new(self._session, b"%s %d " % (who, number) + text, hashlib.sha256).hexdigest()[:32].encode()

    def _read(self, line: bytes) -> Optional[Message]:
        signature, _, text = line.partition(b" ")
        if len(line) > LONGEST_LINE or not hmac.compare_digest(
            signature, self._sign(not self._as_hub, self._received, text)
        ):
            return None
        self._received += 1
        return _messages.parse(text, to_hub=self._as_hub)

    def _write(self, data: bytes) -> bool:
        try:
            while data:
                if not _ready(self._socket, select.POLLOUT, self.patience):
                    raise OSError("the other end does not read")
                data = data[self._socket.send(data) :]
        except (OSError, ValueError):
            self.close()
            return False
        return True


def connect(place: Any, secret: bytes, patience: float = 1.0) -> Optional[Connection]:
    """Connect to a hub that knows the secret. Return ``None`` if that fails.

    Args:
        place: the path of a socket, or host and port.
        secret: the secret of both ends.
        patience: seconds to connect. The greeting may take :data:`HELLO_DEADLINE` more.
    """
    try:
        if isinstance(place, str):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(patience)
            sock.connect(place)
        else:
            sock = socket.create_connection(place, timeout=patience)
            if sock.getsockname() == sock.getpeername():
                sock.close()  # a port without a listener may connect to itself
                return None
    except (OSError, UnicodeError, OverflowError):
        return None
    connection = Connection(sock, secret, as_hub=False)
    end = time.monotonic() + HELLO_DEADLINE
    while connection.open and not connection.known and time.monotonic() < end:
        connection.wait(0.2)
        connection.receive()
    if connection.known:
        return connection
    connection.close()
    return None


def listen_here(path: str) -> socket.socket:
    """Listen on a socket file in a private directory of this user. Replace a leftover file."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.bind(path)
        os.chmod(path, 0o600)
        sock.listen(128)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def listen(ports: list[int], everywhere: bool) -> Optional[socket.socket]:
    """Listen on the first free port.

    Args:
        ports: ports to try, best first.
        everywhere: listen on all interfaces (IPv4, and IPv6 if available) instead of loopback.
    """
    if everywhere:
        kinds = [("", socket.AF_INET6, True)] * socket.has_dualstack_ipv6() + [("", socket.AF_INET, False)]
    else:
        kinds = [(LOOPBACK[0], socket.AF_INET, False), (LOOPBACK[1], socket.AF_INET6, False)]
    for port in ports:
        for host, family, both in kinds:
            with contextlib.suppress(OSError):
                sock = socket.create_server((host, port), family=family, backlog=128, dualstack_ipv6=both)
                sock.setblocking(False)
                return sock
    return None


def _is_nonce(text: bytes) -> bool:
    return len(text) == 32 and not text.strip(b"0123456789abcdef")


def _is_same_user(sock: socket.socket) -> bool:
    """True if the peer's process belongs to this user, or is on another node."""
    if sock.family != socket.AF_UNIX:
        owner = _owner(sock)
        return owner is None or owner == os.getuid()
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == os.getuid())


def _owner(sock: socket.socket) -> Optional[int]:
    """Return the user id of the peer if it is on this machine; ``None`` if unknown."""
    try:
        ends = [(_address(end[0]), end[1]) for end in (sock.getpeername(), sock.getsockname())]
        wanted = [_as_in_proc(*end) for end in ends]
        with open("/proc/net/tcp6" if ends[0][0].version == 6 else "/proc/net/tcp", encoding="ascii") as file:
            rows = [line.split() for line in file]
    except (OSError, ValueError):
        return None
    return next((int(row[7]) for row in rows if row[1:3] == wanted), None)


def _address(host: str) -> Union[ipaddress.IPv4Address, ipaddress.IPv6Address]:
    """Parse an address. ``::ffff:10.0.0.1``, the form of an IPv4 peer of a dual-stack socket, becomes IPv4."""
    found = ipaddress.ip_address(host.partition("%")[0])
    return getattr(found, "ipv4_mapped", None) or found


def _as_in_proc(address: Union[ipaddress.IPv4Address, ipaddress.IPv6Address], port: int) -> str:
    """Format an address as ``/proc/net/tcp`` does, ``"0100007F:1F90"``: 32-bit words in the machine's byte order."""
    packed = address.packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def _ready(sock: socket.socket, event: int, seconds: float) -> bool:
    poll = select.poll()  # select() refuses descriptors above 1023
    poll.register(sock, event)
    return bool(poll.poll(max(0.0, seconds) * 1000))
