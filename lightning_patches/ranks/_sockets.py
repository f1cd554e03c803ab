"""Count the traffic of the sockets of this node's processes, which ``/proc/PID/io`` does not include.

Uses netlink (``sock_diag``), which needs no privileges and exists only on Linux.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
from typing import Iterable, NamedTuple, Optional

_SOCK_DIAG = 4
_BY_FAMILY, _ERROR, _DONE = 20, 2, 3
_REQUEST_DUMP = 0x301
_INFO = 2
"""Netlink attribute of TCP sockets with the kernel's ``tcp_info``."""
_PEER = 2
"""Netlink attribute of unix sockets with the inode of the other end."""
_BYTES = struct.Struct("=QQ")
_AT_BYTES = 120
"""Offset in ``tcp_info`` of the acknowledged bytes, followed by the received bytes."""
_SECONDS = 1.0


class Tcp(NamedTuple):
    """A TCP connection: bytes in both directions, and its two ends (port and address)."""

    carried: int
    ends: tuple[bytes, bytes]

    @property
    def ports(self) -> tuple[int, int]:
        here, there = (int.from_bytes(end[:2], "big") for end in self.ends)
        return here, there


class Table(NamedTuple):
    """All sockets of this network namespace, by inode.

    Args:
        tcp: the TCP connections.
        peers: for unix sockets, the inode of the other end, or 0.
    """

    tcp: dict[int, Tcp]
    peers: dict[int, int]


def table() -> Optional[Table]:
    """Return the current sockets; ``None`` if the kernel does not provide them."""
    tcp: dict[int, Tcp] = {}
    peers: dict[int, int] = {}
    try:
        with socket.socket(getattr(socket, "AF_NETLINK"), socket.SOCK_RAW, _SOCK_DIAG) as netlink:  # noqa: B009
            netlink.settimeout(_SECONDS)
            for family in (socket.AF_INET, socket.AF_INET6):
                # family, protocol, attributes, padding, states (all), any ends
                request = struct.pack("=BBBxI48x", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0xFFFFFFFF)
                for body in _ask(netlink, request):
                    (inode,) = struct.unpack_from("=I", body, 68)
                    info = _attributes(body[72:]).get(_INFO, b"")
                    carried = sum(_BYTES.unpack_from(info, _AT_BYTES)) if len(info) >= _AT_BYTES + _BYTES.size else 0
                    ends = (body[4:6] + body[8:24], body[6:8] + body[24:40])
                    if inode:
                        tcp[inode] = Tcp(carried, ends)
            # family, protocol, padding, states (all), inode (any), attributes (the peer), cookie
            request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, 4, 0, 0)
            for body in _ask(netlink, request):
                (inode,) = struct.unpack_from("=I", body, 4)
                peer = _attributes(body[16:]).get(_PEER, b"")
                peers[inode] = struct.unpack("=I", peer)[0] if len(peer) == 4 else 0
    except (OSError, AttributeError, struct.error):
        return None
    return Table(tcp, peers)


def of_process(pid: int) -> set[int]:
    """Return the inodes of a process's open sockets; empty if they are not readable."""
    found = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}"))
                if match:
                    found.add(int(match[1]))
    return found


def traffic(own: set[int], ranks: Iterable[int], port: str) -> tuple[dict[int, int], bool]:
    """Return the bytes that a process's sockets have carried, without the connections between ranks.

    Args:
        own: inodes of the sockets of the process and its children.
        ranks: pids of the other ranks of this node.
        port: ``MASTER_PORT``. Its connections do not count, since torch polls its store while it waits.

    Returns:
        Bytes by the inode of each TCP connection, and True if the process has sockets without byte counters.
    """
    if not own:
        return {}, False
    known = table()
    if known is None:
        return {}, True
    theirs = {inode for pid in ranks for inode in of_process(pid)}
    between_ranks = {known.tcp[inode].ends[::-1] for inode in theirs if inode in known.tcp}
    carried, has_uncounted = {}, False
    for inode in own:
        connection = known.tcp.get(inode)
        if connection is not None:
            if connection.ends not in between_ranks and port not in map(str, connection.ports):
                carried[inode] = connection.carried
        elif inode in known.peers:
            peer = known.peers[inode]
            has_uncounted = has_uncounted or bool(peer and peer not in own and peer not in theirs)
        else:
            has_uncounted = True
    return carried, has_uncounted


def _ask(netlink: socket.socket, request: bytes) -> list[bytes]:
    """Send a request and return the bodies of the answers."""
    netlink.sendto(struct.pack("=IHHII", 16 + len(request), _BY_FAMILY, _REQUEST_DUMP, 1, 0) + request, (0, 0))
    bodies: list[bytes] = []
    while True:
        data = netlink.recv(1 << 17)
        while len(data) >= 16:
            length, kind = struct.unpack_from("=IH", data)
            if kind == _DONE:
                return bodies
            if kind == _ERROR or length < 16:
                raise OSError("the kernel does not list sockets")
            bodies.append(data[16:length])
            data = data[(length + 3) & ~3 :]


def _attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        found[kind] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found
