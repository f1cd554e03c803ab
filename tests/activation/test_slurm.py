"""SLURM's own ``srun``, of a cluster of one node that the test starts on this machine."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.activation.conftest import TRAIN, Environment, World, check
from tests.support import groups
from tests.support.ports import free_port

SERVICES = ("munged", "slurmctld", "slurmd")
SRUN = ("srun", "--ntasks=2", "--ntasks-per-node=2", "--overcommit", "--job-name=train", "--unbuffered")
CONFIGURATION = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
FirstJobId={first_job}
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
ReturnToService=2
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP
"""
pytestmark = [
    pytest.mark.distributed,
    pytest.mark.xdist_group("slurm"),  # one cluster
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(shutil.which(name) for name in (*SERVICES, "srun", "sinfo")),
        reason="needs SLURM and munge (Debian: slurm-wlm, munge), and to be root",
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    """The variables with which commands of SLURM find the cluster."""
    host = os.uname().nodename.partition(".")[0]
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:  # short, for the path of munge's socket
        directory = Path(name)
        for part in ("state", "spool"):
            (directory / part).mkdir()
        directory.chmod(0o755)
        key, configuration = directory / "munge.key", directory / "slurm.conf"
        munge_socket = directory / "munge.socket"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        numbers = {"controller_port": free_port(), "node_port": free_port(), "cpus": os.cpu_count()}
        # Lightning's port is 15000 and the last four digits of the job: not that of a cluster beside this one
        numbers["first_job"] = 1 + os.getpid() % 990 * 10
        configuration.write_text(CONFIGURATION.format(host=host, directory=directory, **numbers))
        variables = {"SLURM_CONF": str(configuration)}
        own = [f"--{name}={directory / name}" for name in ("pid-file", "seed-file", "log-file")]
        started: list[subprocess.Popen[bytes]] = []
        try:
            started.append(_start(["munged", "-F", f"--key-file={key}", f"--socket={munge_socket}", *own], directory))
            _wait_for(munge_socket.exists, started, directory)
            started += [_start([name, "-D", "-f", str(configuration)], directory) for name in ("slurmctld", "slurmd")]
            _wait_for(lambda: _idle(variables), started, directory)
            yield variables
        finally:
            for process in reversed(started):
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    pass
                groups.end(process.pid)
                process.wait()


def _start(command: list[str], directory: Path) -> subprocess.Popen[bytes]:
    with open(directory / f"{command[0]}.out", "wb") as output:
        return groups.start(command, output)


def _wait_for(condition: Callable[[], bool], started: list[subprocess.Popen[bytes]], directory: Path) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        ended = [process for process in started if process.poll() is not None]
        if ended or time.monotonic() > deadline:
            said = "\n".join(path.read_text(errors="replace")[-1000:] for path in sorted(directory.glob("*.out")))
            pytest.fail(f"the cluster did not start; ended: {[process.args for process in ended]}\n{said}")
        time.sleep(0.2)


def _idle(variables: dict[str, str]) -> bool:
    command = ["sinfo", "--noheader", "--format=%t"]
    asked = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    return asked.stdout.strip() == "idle"


def test_srun(world: World, cluster: dict[str, str]) -> None:
    told = world.launch(*SRUN, world.environment.python, TRAIN, "ddp", **cluster)
    check(told, {"ddp-0", "ddp-1"})
    assert told["ddp-0"]["parent"] == told["ddp-1"]["parent"]  # slurmstepd


def test_run_as_the_command_of_srun(environment: Environment, cluster: dict[str, str], tmp_path: Path) -> None:
    world = World("none", environment, tmp_path)
    told = world.launch(*SRUN, environment.command("lightning-patches"), "run", TRAIN, "ddp", **cluster)
    check(told, {"ddp-0", "ddp-1"})


def test_exit_status(environment: Environment, cluster: dict[str, str]) -> None:
    command = (environment.command("lightning-patches"), "run", "--", "srun", "--ntasks=1", environment.python)
    assert environment.run(*command, "-c", "raise SystemExit(7)", **cluster)[0] == 7
