"""Rank zero's server: a socket file for ranks of the same node, and a port for the others.

The server closes the connection of a peer that violates the protocol.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from collections import Counter
from dataclasses import fields
from typing import Callable

from lightning_patches.ranks.hang import _wire
from lightning_patches.ranks.hang._identity import Identity
from lightning_patches.ranks.hang._messages import FINISHED, Message
from lightning_patches.ranks.hang._peers import LOST, Peer
from lightning_patches.ranks.hang._registry import Job, Outside
from lightning_patches.ranks.hang._wire import Connection

MOST_PENDING = 32
_MOST_VIEWERS = 2


class Server:
    """Rank zero's connections.

    Args:
        job: the job's files on this node.
        identity: returns the identity of rank zero.
        urgent: an event that ends :meth:`serve` early.
    """

    def __init__(self, job: Job, identity: Callable[[], Identity], urgent: threading.Event) -> None:
        self._identity, self._urgent = identity, urgent
        self.ranks: dict[tuple[str, int], Peer] = {}
        self._pending: list[Peer] = []
        self.viewers: list[Peer] = []
        self._selector = selectors.DefaultSelector()
        self._secrets: dict[socket.socket, bytes] = {}
        self._listeners = [_wire.listen_here(job.socket)]
        self._add_listener(self._listeners[0], job.secret())

    def listen_on_port(self, ports: list[int], secret: bytes) -> bool:
        """Also listen on a port, on loopback if the job has one node. Return False if no port is free."""
        listener = _wire.listen(ports, everywhere=not self._identity().one_node)
        if listener is None:
            return False
        self._listeners.append(listener)
        self._add_listener(listener, secret)
        return True

    @property
    def listens_on_port(self) -> bool:
        return len(self._listeners) > 1

    @property
    def is_complete(self) -> bool:
        """True if every rank has sent the message "hello"."""
        return len(self.ranks) >= self._identity().world_size

    def close(self) -> None:
        """Close the parent's sockets in a forked child."""
        for listener in self._listeners:
            listener.close()
        for peer in (*self.ranks.values(), *self._pending, *self.viewers):
            peer.connection.close()

    def _add_listener(self, listener: socket.socket, secret: bytes) -> None:
        self._secrets[listener] = secret
        self._selector.register(listener, selectors.EVENT_READ)

    def serve(self, seconds: float) -> None:
        """Receive messages of the ranks for a number of seconds."""
        end = time.monotonic() + seconds
        while True:
            for key, _ in self._selector.select(min(1.0, max(0.0, end - time.monotonic()))):
                if isinstance(key.fileobj, socket.socket):
                    self._accept(key.fileobj)
                else:
                    self._receive(key.data)
            now = time.monotonic()
            for peer in list(self._pending):
                if now - peer.connection.since > _wire.HELLO_DEADLINE:
                    peer.connection.close()
            self.drop_closed()
            if now >= end or (seconds > 1.0 and self.viewers) or self._urgent.is_set():
                return

    def serve_until(self, done: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not done() and time.monotonic() < end:
            self.serve(0.05)

    def _accept(self, listener: socket.socket) -> None:
        """Accept a connection. The number of connections without a "hello" is limited."""
        try:
            sock, address = listener.accept()
        except OSError:  # for example too many open files
            time.sleep(0.05)
            return
        if len(self._pending) >= MOST_PENDING:
            self._drop_oldest_pending()
        self.drop_closed()
        peer = Peer(Connection(sock, self._secrets[listener], as_hub=True), sock.fileno())
        peer.address = str(address[0]) if address else ""
        if peer.connection.open:
            self._pending.append(peer)
            self._selector.register(peer.descriptor, selectors.EVENT_READ, peer)

    def _drop_oldest_pending(self) -> None:
        """Close the oldest unauthenticated connection of the address that has most such connections."""
        unknown = [peer for peer in self._pending if not peer.connection.known] or self._pending
        many = Counter(peer.address for peer in unknown)
        min(unknown, key=lambda peer: (-many[peer.address], peer.connection.since)).connection.close()

    def _receive(self, peer: Peer) -> None:
        for message in peer.connection.receive():
            if peer.connection.open:
                self._handle(peer, message)

    def drop_closed(self) -> None:
        peers = (*self.ranks.values(), *self._pending, *self.viewers)
        for peer in [peer for peer in peers if not peer.connection.open]:
            if peer.descriptor >= 0:
                self._selector.unregister(peer.descriptor)
                peer.descriptor = -1
            if peer in self._pending:
                self._pending.remove(peer)
            elif peer in self.viewers:
                self.viewers.remove(peer)
            elif peer.ending is None:
                peer.end(FINISHED if peer.finished else LOST)

    def _handle(self, peer: Peer, message: Message) -> None:
        kind = message["t"]
        if kind == "hello":
            self._welcome(peer, message)
        elif kind == "show" and peer in self._pending and len(self.viewers) < _MOST_VIEWERS:
            self._pending.remove(peer)
            self.viewers.append(peer)
        elif not peer.hello:
            peer.connection.close()
        elif kind == "beat":
            peer.beat, peer.heard_at = message, time.monotonic()
            peer.connection.send({"t": "pulse"})
        elif kind == "report":
            peer.answer = message
        elif kind == "probed":
            other = self.ranks.get((peer.key[0], message["local_rank"]))
            if other is not None:
                other.outside = Outside(**{field.name: message[field.name] for field in fields(Outside)})
        elif kind == "bye" and message["kind"] == FINISHED:
            peer.finished = True
        elif kind == "bye":
            peer.end(message["kind"], message["detail"])

    def _welcome(self, peer: Peer, hello: Message) -> None:
        """Register a peer as the rank in its message "hello", unless another live process is that rank."""
        if peer.hello and (hello["node_id"], hello["local_rank"]) != peer.key:
            peer.connection.close()
            return
        key, rank = (hello["node_id"], hello["local_rank"]), hello["rank"]
        same = [
            other
            for other in self.ranks.values()
            if other is not peer and (other.key == key or (rank is not None and other.hello["rank"] == rank))
        ]
        free = not any(other.alive for other in same)
        for other in same if free else []:
            del self.ranks[other.key]
        within = hello["local_rank"] < self._identity().world_size and (
            rank is None or rank < self._identity().world_size
        )
        if not free or not within or (key not in self.ranks and len(self.ranks) >= self._identity().world_size):
            peer.connection.send({"t": "taken"})
            peer.connection.close()
            return
        if peer in self._pending:
            self._pending.remove(peer)
        peer.hello = hello
        self.ranks[key] = peer
        peer.connection.send({"t": "welcome", "host": socket.gethostname(), "pid": os.getpid()})
