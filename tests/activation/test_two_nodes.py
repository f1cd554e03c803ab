"""Two nodes: two network namespaces of this machine with an address each, and torchrun's rendezvous between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.activation.conftest import TRAIN, World, check
from tests.support.nodes import Node, two_nodes

pytestmark = pytest.mark.distributed


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Node, Node]]:
    with two_nodes() as pair:
        yield pair


def test_ranks_on_two_nodes_are_patched(world: World, nodes: tuple[Node, Node], tmp_path: Path) -> None:
    processes = []
    for rank, node in enumerate(nodes):
        torchrun = ["torchrun", "--nnodes", "2", "--nproc_per_node", "1", "--node_rank", str(rank)]
        torchrun += ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"{nodes[0].address}:29417", "--rdzv_id", "patches"]
        torchrun += ["--rdzv_conf", f"is_host={1 - rank}", "--local_addr", node.address, TRAIN, "ddp"]
        variables = world.variables(PROBE_NODES="2", PROBE_HOST=node.address, GLOO_SOCKET_IFNAME=node.interface)
        command = node.command(*world.command(tuple(torchrun)))
        processes.append(world.start(command, variables, tmp_path / f"node{rank}.log"))
    world.wait(processes)
    reports = world.reports()
    check(reports, {"ddp-0", "ddp-1"})
    assert {seen["host"] for seen in reports.values()} == {node.address for node in nodes}
