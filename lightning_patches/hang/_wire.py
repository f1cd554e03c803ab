"""Messages between ranks: JSON, one a line, over TCP. Text and numbers only, from whoever it may be."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import threading
from typing import Any, Optional

_LARGEST = 1 << 20
Message = dict[str, Any]


class Connection:
    """One end of a connection. Sending never blocks for longer than ``patience``."""

    patience = 1.0

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = b""
        self._sending = threading.Lock()
        self.open = True
        sock.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> bool:
        """Whether the message went out; if not, the connection is of no use, and the next ``receive`` closes it."""
        data = json.dumps(message).encode() + b"\n"
        with self._sending:
            try:
                while data and self.open:
                    if not _ready(self._socket, select.POLLOUT, self.patience):
                        raise OSError("the other end does not read")
                    data = data[self._socket.send(data) :]
            except (OSError, ValueError):
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
                return False
        return self.open

    def receive(self) -> list[Message]:
        """What has come so far. Afterwards ``open`` is false if the other end has gone."""
        messages: list[Message] = []
        try:
            while self.open:
                data = self._socket.recv(1 << 16)
                if not data or len(self._buffer) > _LARGEST:
                    self.close()
                    break
                self._buffer += data
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.close()
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                self.close()  # nobody of ours
                break
            if isinstance(message, dict):
                messages.append(message)
        return messages

    def wait(self, seconds: float) -> bool:
        """Until something can be received, or the time is over."""
        with contextlib.suppress(OSError, ValueError):
            return self.open and _ready(self._socket, select.POLLIN, seconds)
        return False

    def close(self) -> None:
        self.open = False
        with contextlib.suppress(OSError):
            self._socket.close()


def connect(address: str, port: int, patience: float) -> Optional[Connection]:
    """``None`` if nobody listens there."""
    try:
        sock = socket.create_connection((address, port), timeout=patience)
    except (OSError, UnicodeError):
        return None
    if sock.getsockname() == sock.getpeername():
        sock.close()  # a port that nobody listens on may connect to itself
        return None
    return Connection(sock)


def listen(address: str, ports: list[int]) -> Optional[socket.socket]:
    """Listen on the first port that is free."""
    for port in ports:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address, port))
            sock.listen(1024)
            sock.setblocking(False)
            return sock
        except OSError:
            sock.close()
    return None


def only_one_of_this_host(name: str) -> Optional[socket.socket]:
    """A mark that one process of the host can hold at a time; ``None`` if another one has it."""
    mark = socket.socket(socket.AF_UNIX)
    if not sys.platform.startswith("linux"):
        return mark  # no such names: everybody may speak
    try:
        mark.bind(f"\0{name}-{os.getuid()}")  # a name without a file: it goes with the process
    except OSError:
        mark.close()
        return None
    return mark


def _ready(sock: socket.socket, event: int, seconds: float) -> bool:
    poll = select.poll()  # select() refuses descriptors above 1023
    poll.register(sock, event)
    return bool(poll.poll(max(0.0, seconds) * 1000))
