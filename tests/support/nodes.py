"""Two nodes: two network namespaces of this machine with an address each."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest


class Node(NamedTuple):
    """One of two machines, as far as the network goes."""

    namespace: str
    interface: str
    address: str

    def command(self, *arguments: str, host: bool = False) -> list[str]:
        """A command, to be run on this node; with ``host``, under a host name of its own, the namespace's."""
        inside = ["ip", "netns", "exec", self.namespace]
        if host:
            inside += ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.namespace]
        return [*inside, *arguments]


@contextlib.contextmanager
def two_nodes() -> Iterator[tuple[Node, Node]]:
    """Makes the nodes, and skips the test where that is not allowed."""
    if shutil.which("ip") is None:
        pytest.skip("two nodes need the command ip (iproute2)")
    identity = f"{os.getpid() % 100000}"
    pair = (
        Node(f"patches-a{identity}", f"lpa{identity}", "10.213.7.1"),
        Node(f"patches-b{identity}", f"lpb{identity}", "10.213.7.2"),
    )
    try:
        for node in pair:
            _ip("netns", "add", node.namespace)
        _ip("link", "add", pair[0].interface, "type", "veth", "peer", "name", pair[1].interface)
        for node in pair:
            _ip("link", "set", node.interface, "netns", node.namespace)
            _ip("-n", node.namespace, "address", "add", f"{node.address}/24", "dev", node.interface)
            for interface in (node.interface, "lo"):
                _ip("-n", node.namespace, "link", "set", interface, "up")
        yield pair
    except OSError as error:
        pytest.skip(f"two nodes need the right to make network namespaces: {error}")
    finally:
        for node in pair:  # the interfaces go with their namespace
            subprocess.run(["ip", "netns", "delete", node.namespace], capture_output=True)


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
