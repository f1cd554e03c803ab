"""Start ranks as real processes, and end all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from tests.support.nodes import Node
from tests.support.ports import free_port
from tests.support.run import end, start, variables

PROGRAMS = Path(__file__).resolve().parent / "programs"


@dataclass(frozen=True)
class Ended:
    """The end of all ranks.

    Args:
        statuses: exit status of each rank, negative for a signal; ``None`` for a rank that was killed at the timeout.
        outputs: stdout and stderr of each rank.
        seconds: time until the last rank ended.
        peak_megabytes: peak memory of all ranks together, if measured.
    """

    statuses: list[Optional[int]]
    outputs: list[str]
    seconds: float
    peak_megabytes: float = 0.0

    def __str__(self) -> str:
        return f"{self.statuses} after {self.seconds:.1f} s\n" + "\n".join(
            f"--- {rank}\n{text}" for rank, text in enumerate(self.outputs)
        )


def run_ranks(
    program: str,
    arguments: list[Optional[list[str]]],
    environment: dict[str, str],
    timeout: float = 300,
    leave_when: Optional[str] = None,
    memory: bool = False,
    nodes: Sequence[Node] = (),
) -> Ended:
    """Run ``programs/<program>.py`` once per rank, with the variables of torchrun.

    Args:
        program: name of the program.
        arguments: arguments of each rank, ``None`` for a rank that is never started.
        environment: additional variables.
        timeout: seconds until the remaining processes are killed.
        leave_when: text that ends the run as soon as a rank has printed it.
        memory: measure the memory of the ranks.
        nodes: a node for each rank, unless all are on this one.
    """
    port = str(free_port())
    began = time.monotonic()
    processes: list[Optional[subprocess.Popen[bytes]]] = []
    with tempfile.TemporaryDirectory(prefix="ranks-") as directory:
        files = [Path(directory, f"rank{rank}") for rank in range(len(arguments))]
        try:
            for rank, own in enumerate(arguments):
                files[rank].touch()
                if own is None:
                    processes.append(None)
                    continue
                launched = variables(OMP_NUM_THREADS="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
                launched.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(len(arguments)), **environment)
                command = [sys.executable, str(PROGRAMS / f"{program}.py"), *own]
                if nodes:
                    command = nodes[rank].command(*command, host=not nodes[rank].own_pids)
                    launched.update(NODE_RANK=str(rank), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
                    launched.update(MASTER_ADDR=nodes[0].address, GLOO_SOCKET_IFNAME=nodes[rank].interface)
                with files[rank].open("w") as output:
                    processes.append(start(command, output, launched, directory))
            running = [process for process in processes if process is not None]
            peak = 0.0
            while any(map(_runs, running)) and time.monotonic() - began < timeout:
                time.sleep(0.01 if memory else 0.05)
                if memory:
                    peak = max(peak, sum(_resident(process.pid) for process in running))
                if leave_when and any(leave_when in file.read_text(errors="replace") for file in files):
                    break
            statuses = [None if process is None else process.poll() for process in processes]
        finally:
            for process in processes:
                if process is not None:
                    end(process.pid)
                    process.wait()
        outputs = [file.read_text(errors="replace") for file in files]
    return Ended(statuses, outputs, time.monotonic() - began, peak)


def _runs(process: subprocess.Popen[bytes]) -> bool:
    """True if the process runs. Does not collect its status, which another rank's watch reads."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _resident(pid: int) -> float:
    """Return a process's resident memory in megabytes; 0 if it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
