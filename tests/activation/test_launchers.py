"""Every launcher with every way to activate: real processes report if the patches are applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.activation.conftest import PROGRAMS, TRAIN, Environment, World, check, write_script
from tests.support.ports import free_port

pytestmark = pytest.mark.distributed


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
