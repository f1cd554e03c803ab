"""Two nodes: two network namespaces of this machine with an address each, and torchrun's rendezvous between them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.activation.conftest import PROGRAMS, WAYS
from tests.activation.test_launchers import World, check

TRAIN = str(PROGRAMS / "train.py")
pytestmark = pytest.mark.distributed


class Node(NamedTuple):
    """One of two machines, as far as the network goes."""

    namespace: str
    interface: str
    address: str


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Node, Node]]:
    if shutil.which("ip") is None:
        pytest.skip("two nodes need the command ip (iproute2)")
    identity = f"{os.getpid() % 100000}"
    pair = (
        Node(f"patches-a{identity}", f"lpa{identity}", "10.213.7.1"),
        Node(f"patches-b{identity}", f"lpb{identity}", "10.213.7.2"),
    )
    try:
        for node in pair:
            ip("netns", "add", node.namespace)
        ip("link", "add", pair[0].interface, "type", "veth", "peer", "name", pair[1].interface)
        for node in pair:
            ip("link", "set", node.interface, "netns", node.namespace)
            ip("-n", node.namespace, "address", "add", f"{node.address}/24", "dev", node.interface)
            for interface in (node.interface, "lo"):
                ip("-n", node.namespace, "link", "set", interface, "up")
        yield pair
    except OSError as error:
        pytest.skip(f"two nodes need the right to make network namespaces: {error}")
    finally:
        for node in pair:  # the interfaces go with their namespace
            subprocess.run(["ip", "netns", "delete", node.namespace], capture_output=True)


@pytest.mark.parametrize("way", WAYS)
def test_two_nodes(request: pytest.FixtureRequest, nodes: tuple[Node, Node], tmp_path: Path, way: str) -> None:
    world = World(way, request.getfixturevalue("autostarted" if way == "autostart" else "environment"), tmp_path)
    processes = []
    for rank, node in enumerate(nodes):
        torchrun = ["torchrun", "--nnodes", "2", "--nproc_per_node", "1", "--node_rank", str(rank)]
        torchrun += ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"{nodes[0].address}:29417", "--rdzv_id", "patches"]
        torchrun += ["--rdzv_conf", f"is_host={1 - rank}", "--local_addr", node.address, TRAIN, "ddp"]
        variables = world.variables(PROBE_NODES="2", PROBE_HOST=node.address, GLOO_SOCKET_IFNAME=node.interface)
        command = ["ip", "netns", "exec", node.namespace, *world.command(tuple(torchrun))]
        processes.append(world.start(command, variables, tmp_path / f"node{rank}.log"))
    world.wait(processes)
    told = world.told()
    check(told, {"ddp-0", "ddp-1"})
    assert {seen["host"] for seen in told.values()} == {node.address for node in nodes}
