"""Launchers x ways in: real processes, each of which tells whether the patches live in it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.activation.conftest import PROGRAMS, WAYS, Environment
from tests.support import groups
from tests.support.arms import execute

PATCHES = ["logged-metrics-device", "dataloader-error-unmasked"]
TRAIN = str(PROGRAMS / "train.py")
pytestmark = pytest.mark.distributed


class World:
    """One way to activate the patches.

    Args:
        way: of ``WAYS``, or ``"none"``.
        environment: where Python comes from; for ``autostart`` the one in which that is enabled.
        out: where the processes of the program write what they see.
    """

    def __init__(self, way: str, environment: Environment, out: Path) -> None:
        self.way = way
        self.environment = environment
        self.out = out

    def launch(self, *command: str, timeout: float = 240, **more: str) -> dict[str, Any]:
        """Run a command of the environment in this way; returns what was told, by ``<what>-<rank>``."""
        status, output = execute(self.command(command), self.variables(**more), timeout, cwd=str(self.out))
        self.check_output(status, output)
        return self.told()

    def start(self, command: list[str], variables: dict[str, str], log: Path) -> tuple[subprocess.Popen[bytes], Path]:
        """Start one command of several that need each other."""
        with open(log, "wb") as output:
            process = subprocess.Popen(
                command,
                env=variables,
                cwd=self.out,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return process, log

    def wait(self, processes: list[tuple[subprocess.Popen[bytes], Path]], timeout: float = 240) -> None:
        """Wait for all of them; nothing of theirs is left running."""
        deadline = time.monotonic() + timeout
        statuses = []
        try:
            for process, _ in processes:
                statuses.append(process.wait(max(0.0, deadline - time.monotonic())))
        finally:
            for process, _ in processes:
                groups.end(process.pid)
                process.wait()
        for status, (_, log) in zip(statuses, processes):
            self.check_output(status, log.read_text(errors="replace"))

    def check_output(self, status: int, output: str) -> None:
        assert status == 0, output
        assert "is not patched" not in output  # the canary sees what we see

    def variables(self, **more: str) -> dict[str, str]:
        variables = self.environment.variables(PROBE_WAY=self.way, PROBE_OUT=str(self.out), **more)
        if self.way == "autostart":
            variables["LIGHTNING_PATCHES"] = "1"  # what wakes it; the other two ways work without
        return variables

    def command(self, command: tuple[str, ...]) -> list[str]:
        started = [self.environment.command(command[0]) if command[0] == "torchrun" else command[0], *command[1:]]
        if self.way == "run":
            return [self.environment.command("lightning-patches"), "run", "--", *started]
        return [self.environment.python, *started] if started[0].endswith(".py") else started

    def told(self) -> dict[str, Any]:
        return {path.stem: json.loads(path.read_text()) for path in self.out.glob("*.json")}


@pytest.fixture(params=WAYS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    name = "autostarted" if request.param == "autostart" else "environment"
    return World(request.param, request.getfixturevalue(name), tmp_path)


def check(told: dict[str, Any], expected: set[str]) -> None:
    """The patches live in all of these processes, which are different ones."""
    assert set(told) == expected
    for name, seen in told.items():
        assert seen["live"] == PATCHES, (name, seen)
        assert seen["verdicts"] == ["applied", "applied"], (name, seen)


def test_ddp_subprocess_launcher(world: World) -> None:
    told = world.launch(TRAIN, "ddp")
    check(told, {"ddp-0", "ddp-1"})
    assert told["ddp-1"]["parent"] == told["ddp-0"]["pid"]


def test_ddp_fork_spawn_and_forkserver(world: World) -> None:
    told = world.launch(TRAIN, "ddp_fork", "ddp_spawn", "ddp_forkserver")
    check(told, {f"{what}-{rank}" for what in ("ddp_fork", "ddp_spawn", "ddp_forkserver") for rank in (0, 1)})
    assert len({seen["pid"] for seen in told.values()}) == 6
    classes = {"ddp_fork": "ForkProcess", "ddp_spawn": "SpawnProcess", "ddp_forkserver": "ForkServerProcess"}
    assert {name: seen["start_method"] for name, seen in told.items()} == {
        f"{what}-{rank}": name for what, name in classes.items() for rank in (0, 1)
    }


def test_torchrun(world: World) -> None:
    told = world.launch("torchrun", "--standalone", "--nproc_per_node", "2", TRAIN, "ddp")
    check(told, {"ddp-0", "ddp-1"})
    assert told["ddp-0"]["parent"] == told["ddp-1"]["parent"]  # the agent


def test_slurm(world: World) -> None:
    python = world.environment.python
    port = str(free_port())
    told = world.launch(str(PROGRAMS / "srun"), python, TRAIN, "ddp", MASTER_PORT=port)
    check(told, {"ddp-0", "ddp-1"})


def test_data_loader_workers(world: World) -> None:
    told = world.launch(TRAIN, "loaders")
    check(told, {f"loader_{method}-0" for method in ("fork", "spawn", "forkserver")})
    assert len({seen["pid"] for seen in told.values()}) == 3


def test_notebook(world: World) -> None:
    told = world.launch(str(PROGRAMS / "notebook.py"))
    check(told, {"ddp_notebook-0", "ddp_notebook-1"})


def test_nothing_is_patched_without_asking(environment: Environment, tmp_path: Path) -> None:
    """What the tests above see is the doing of the way in: the same program, asleep, is stock in every rank."""
    told = World("none", environment, tmp_path).launch(
        "torchrun", "--standalone", "--nproc_per_node", "2", TRAIN, "ddp"
    )
    assert set(told) == {"ddp-0", "ddp-1"}
    assert all(seen["live"] == [] and seen["verdicts"] == [None, None] for seen in told.values())


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
