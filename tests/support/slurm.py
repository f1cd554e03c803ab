"""Real SLURM services of a cluster that a test starts on this machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support import run
from tests.support.nodes import Node
from tests.support.ports import free_port

SERVICES = ("munged", "slurmctld", "slurmd")
MISSING = os.geteuid() != 0 or not all(shutil.which(name) for name in (*SERVICES, "srun", "sinfo"))
needed = pytest.mark.skipif(MISSING, reason="needs SLURM and munge (Debian: slurm-wlm, munge), and to be root")
CONFIGURATION = """
ClusterName=one
SlurmctldHost={hosts[0]}({addresses[0]})
FirstJobId={first_job}
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
ReturnToService=2
MpiDefault=none
{nodes}
PartitionName=all Nodes={names} Default=YES State=UP
"""


@contextlib.contextmanager
def cluster(nodes: Sequence[Node] = ()) -> Iterator[dict[str, str]]:
    """Start a cluster, and yield the variables with which SLURM's commands find it.

    Args:
        nodes: nodes of the cluster; commands run on the first. Without any, this machine is the only node.
    """
    hosts = [node.namespace for node in nodes] or [os.uname().nodename.partition(".")[0]]
    addresses = [node.address for node in nodes] or ["127.0.0.1"]
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:  # short, for the path of munge's socket
        directory = Path(name)
        for part in ("state", *(f"spool-{host}" for host in hosts)):
            (directory / part).mkdir()
        directory.chmod(0o755)
        key, configuration = directory / "munge.key", directory / "slurm.conf"
        munge_socket = directory / "munge.socket"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        numbers = {"controller_port": free_port(), "node_port": free_port()}
        # Lightning's port is 15000 plus the last four digits of the job, which must differ between clusters
        numbers["first_job"] = 1 + os.getpid() % 990 * 10
        lines = [
            f"NodeName={host} NodeAddr={address} CPUs={os.cpu_count()} State=UNKNOWN"
            for host, address in zip(hosts, addresses)
        ]
        named = {"hosts": hosts, "addresses": addresses, "nodes": "\n".join(lines), "names": ",".join(hosts)}
        configuration.write_text(CONFIGURATION.format(directory=directory, **named, **numbers))
        variables = {"SLURM_CONF": str(configuration)}
        own = [f"--{name}={directory / name}" for name in ("pid-file", "seed-file", "log-file")]
        started: list[subprocess.Popen[bytes]] = []

        def start(name: str, node: int, *arguments: str) -> None:
            command = [name, *arguments]
            command = nodes[node].command(*command, host=True) if nodes else command
            with open(directory / f"{name}-{node}.out", "wb") as output:
                started.append(run.start(command, output))

        try:
            start("munged", 0, "-F", f"--key-file={key}", f"--socket={munge_socket}", *own)
            _wait_for(munge_socket.exists, started, directory)
            start("slurmctld", 0, "-D", "-f", str(configuration))
            for number, host in enumerate(hosts):
                start("slurmd", number, "-D", "-N", host, "-f", str(configuration))
            inside = nodes[0].command() if nodes else []
            _wait_for(lambda: _idle(inside, variables) == len(hosts), started, directory)
            yield variables
        finally:
            for process in reversed(started):
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    pass
                run.end(process.pid)
                process.wait()


def _wait_for(condition: Callable[[], bool], started: list[subprocess.Popen[bytes]], directory: Path) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        ended = [process for process in started if process.poll() is not None]
        if ended or time.monotonic() > deadline:
            printed = "\n".join(path.read_text(errors="replace")[-1000:] for path in sorted(directory.glob("*.out")))
            pytest.fail(f"the cluster did not start; ended: {[process.args for process in ended]}\n{printed}")
        time.sleep(0.2)


def _idle(inside: list[str], variables: dict[str, str]) -> int:
    """Return the number of idle nodes."""
    command = [*inside, "sinfo", "--noheader", "--Node", "--format=%t"]
    asked = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    return asked.stdout.split().count("idle")
