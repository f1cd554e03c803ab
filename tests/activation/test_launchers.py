"""Every launcher with every way to activate: real processes report if the patches are applied.

Two nodes are two network namespaces of this machine, with torchrun's rendezvous between them. ``srun`` is that of a
SLURM cluster with one node, which the test starts. Ray Train has two workers.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.activation.conftest import PROGRAMS, TRAIN, Environment, World, check, write_script
from tests.support import slurm
from tests.support.nodes import two_nodes
from tests.support.ports import free_port

SRUN = ("srun", "--ntasks=2", "--ntasks-per-node=2", "--overcommit", "--job-name=train", "--unbuffered")
pytestmark = pytest.mark.distributed


def on_slurm(test):
    """Mark a test that needs the cluster, of which there is one."""
    return pytest.mark.xdist_group("slurm")(slurm.needed(test))


def test_ranks_of_the_ddp_subprocess_launcher_are_patched(world: World) -> None:
    reports = world.launch(TRAIN, "ddp")
    check(reports, {"ddp-0", "ddp-1"})
    assert reports["ddp-1"]["parent"] == reports["ddp-0"]["pid"]


def test_ranks_of_ddp_fork_spawn_and_forkserver_are_patched(world: World) -> None:
    reports = world.launch(TRAIN, "ddp_fork", "ddp_spawn", "ddp_forkserver")
    check(reports, {f"{what}-{rank}" for what in ("ddp_fork", "ddp_spawn", "ddp_forkserver") for rank in (0, 1)})
    assert len({seen["pid"] for seen in reports.values()}) == 6
    classes = {"ddp_fork": "ForkProcess", "ddp_spawn": "SpawnProcess", "ddp_forkserver": "ForkServerProcess"}
    assert {name: seen["start_method"] for name, seen in reports.items()} == {
        f"{what}-{rank}": name for what, name in classes.items() for rank in (0, 1)
    }


def test_ranks_of_torchrun_are_patched(world: World) -> None:
    reports = world.launch("torchrun", "--standalone", "--nproc_per_node", "2", TRAIN, "ddp")
    check(reports, {"ddp-0", "ddp-1"})
    assert reports["ddp-0"]["parent"] == reports["ddp-1"]["parent"]  # the agent


@pytest.mark.parametrize("devices", ["1", "2"])
def test_fabric_run_prints_the_start_line_once(fresh_environment: Environment, tmp_path: Path, devices: str) -> None:
    write_script(fresh_environment, "fabric", "lightning.fabric.cli:_main")
    (tmp_path / "program.py").write_text("from lightning.fabric import Fabric\nprint('rank', Fabric().global_rank)\n")
    fabric = ["fabric", "run", "--accelerator", "cpu", "--devices", devices, str(tmp_path / "program.py")]
    run = [fresh_environment.command("lightning-patches"), "run", "--"]
    status, output = fresh_environment.run(*run, *fabric, lightning=True)
    assert status == 0, output
    assert output.count("\nrank ") + output.startswith("rank ") == int(devices), output
    assert output.count("lightning_patches: lightning 2.3.3: ") == 1, output


def test_ranks_of_a_simulated_srun_are_patched(world: World) -> None:
    python = world.environment.python
    port = str(free_port())
    reports = world.launch(str(PROGRAMS / "srun"), python, TRAIN, "ddp", MASTER_PORT=port)
    check(reports, {"ddp-0", "ddp-1"})


def test_data_loader_workers_are_patched(world: World) -> None:
    reports = world.launch(TRAIN, "loaders")
    check(reports, {f"loader_{method}-0" for method in ("fork", "spawn", "forkserver")})
    assert len({seen["pid"] for seen in reports.values()}) == 3


def test_ranks_of_a_notebook_are_patched(world: World) -> None:
    reports = world.launch(str(PROGRAMS / "notebook.py"))
    check(reports, {"ddp_notebook-0", "ddp_notebook-1"})


def test_nothing_is_patched_by_default(environment: Environment, tmp_path: Path) -> None:
    """Control for the tests above: without activation the same program is stock in every rank."""
    reports = World("none", environment, tmp_path).launch(
        "torchrun", "--standalone", "--nproc_per_node", "2", TRAIN, "ddp"
    )
    assert set(reports) == {"ddp-0", "ddp-1"}
    assert all(seen["live"] == [] and seen["verdicts"] == [None, None] for seen in reports.values())


def test_ranks_on_two_nodes_are_patched(world: World, tmp_path: Path) -> None:
    processes = []
    with two_nodes() as nodes:
        for rank, node in enumerate(nodes):
            torchrun = ["torchrun", "--nnodes", "2", "--nproc_per_node", "1", "--node_rank", str(rank)]
            torchrun += [
                "--rdzv_backend",
                "c10d",
                "--rdzv_endpoint",
                f"{nodes[0].address}:29417",
                "--rdzv_id",
                "patches",
            ]
            torchrun += ["--rdzv_conf", f"is_host={1 - rank}", "--local_addr", node.address, TRAIN, "ddp"]
            variables = world.variables(PROBE_NODES="2", PROBE_HOST=node.address, GLOO_SOCKET_IFNAME=node.interface)
            command = node.command(*world.command(tuple(torchrun)))
            processes.append(world.start(command, variables, tmp_path / f"node{rank}.log"))
        world.wait(processes)
    reports = world.reports()
    check(reports, {"ddp-0", "ddp-1"})
    assert {seen["host"] for seen in reports.values()} == {node.address for node in nodes}


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    """The variables with which commands of SLURM find the cluster."""
    with slurm.cluster() as variables:
        yield variables


@on_slurm
def test_ranks_of_srun_are_patched(world: World, cluster: dict[str, str]) -> None:
    reports = world.launch(*SRUN, world.environment.python, TRAIN, "ddp", **cluster)
    check(reports, {"ddp-0", "ddp-1"})
    assert reports["ddp-0"]["parent"] == reports["ddp-1"]["parent"]  # slurmstepd


@on_slurm
def test_ranks_of_srun_are_patched_when_each_starts_with_run(environment, cluster, tmp_path):
    world = World("none", environment, tmp_path)
    reports = world.launch(*SRUN, environment.command("lightning-patches"), "run", TRAIN, "ddp", **cluster)
    check(reports, {"ddp-0", "ddp-1"})


@on_slurm
def test_run_returns_the_exit_status_of_srun(environment: Environment, cluster: dict[str, str]) -> None:
    command = (environment.command("lightning-patches"), "run", "--", "srun", "--ntasks=1", environment.python)
    assert environment.run(*command, "-c", "raise SystemExit(7)", **cluster)[0] == 7


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray[train], which the tests do not bring")
def test_workers_of_ray_train_are_patched(world: World) -> None:
    reports = world.launch(str(PROGRAMS / "ray_train.py"), timeout=500, RAY_USAGE_STATS_ENABLED="0")
    check({name: seen for name, seen in reports.items() if name.startswith("ray-")}, {"ray-0", "ray-1"})
