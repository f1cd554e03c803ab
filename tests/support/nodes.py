"""Simulated nodes (network namespaces with an address each) and containers (PID namespaces)."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

NETWORKS = {4: "10.213.7.", 6: "fd00:213:7::"}
OWN_PIDS = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


class Node(NamedTuple):
    """One of two simulated machines.

    Args:
        namespace: network namespace; "" for that of this machine.
        interface: network interface.
        address: network address.
        own_pids: True to use a new PID namespace.
    """

    namespace: str
    interface: str
    address: str
    own_pids: bool = False

    def command(self, *arguments: str, host: bool = False) -> list[str]:
        """Return a command line that runs a command on this node; with ``host``, under the namespace's host name."""
        inside = []
        if self.namespace:  # not `ip netns exec`, which mounts a new /sys
            inside = ["nsenter", f"--net=/run/netns/{self.namespace}", "unshare", "--mount", "--uts", "sh", "-c"]
            inside += [f'mount --bind {_hosts(self)} /etc/hosts && {"hostname $0 && " * host}exec "$@"', self.namespace]
        return [*inside, *(OWN_PIDS if self.own_pids else ()), *arguments]


def two_containers() -> tuple[Node, Node]:
    """Return two containers of one host, with the same name and network. Skip the test if that is not allowed."""
    if shutil.which("unshare") is None or subprocess.run([*OWN_PIDS, "true"], capture_output=True).returncode:
        pytest.skip("containers need the right to make PID namespaces")
    return (Node("", "lo", "127.0.0.1", True),) * 2


@contextlib.contextmanager
def two_nodes(own_pids: bool = False, version: int = 4) -> Iterator[tuple[Node, Node]]:
    """Create the nodes. Skip the test if that is not allowed.

    Args:
        own_pids: give each node a PID namespace.
        version: 6 for nodes without IPv4.
    """
    if shutil.which("ip") is None:
        pytest.skip("two nodes need the command ip (iproute2)")
    identity = f"{os.getpid() % 100000}"
    pair = (
        Node(f"patches-a{identity}", f"lpa{identity}", NETWORKS[version] + "1", own_pids),
        Node(f"patches-b{identity}", f"lpb{identity}", NETWORKS[version] + "2", own_pids),
    )
    try:
        for node in pair:
            _ip("netns", "add", node.namespace)
            _hosts(node).parent.mkdir(parents=True, exist_ok=True)
            names = [f"{one.address} {one.namespace}" for one in pair]
            _hosts(node).write_text("\n".join(["127.0.0.1 localhost", "::1 localhost", *names, ""]))
        _ip("link", "add", pair[0].interface, "type", "veth", "peer", "name", pair[1].interface)
        for node in pair:
            _ip("link", "set", node.interface, "netns", node.namespace)
            own = ["nodad"] if version == 6 else []  # skips duplicate address detection, which takes two seconds
            _ip("-n", node.namespace, "address", "add", f"{node.address}/24", "dev", node.interface, *own)
            for interface in (node.interface, "lo"):
                _ip("-n", node.namespace, "link", "set", interface, "up")
        yield pair
    except OSError as error:
        pytest.skip(f"two nodes need the right to make network namespaces: {error}")
    finally:
        for node in pair:  # removes the interfaces, too
            pids = subprocess.run(["ip", "netns", "pids", node.namespace], capture_output=True, text=True).stdout
            for pid in map(int, pids.split()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", node.namespace], capture_output=True)
            shutil.rmtree(_hosts(node).parent, ignore_errors=True)


def _hosts(node: Node) -> Path:
    return Path("/etc/netns", node.namespace, "hosts")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
