"""Scenario processes that are forked from one that has imported torch, for runs of many arms.

Most of a scenario's time is spent on importing torch. Each one still gets a process of its own, in which Lightning
and the shim are imported anew, from the release of its arm; only torch and torchmetrics are there already. Ranks that
a scenario starts by itself are ordinary processes.

Run as a program, this file is that parent: ``python preload.py SOCKET``.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Optional

MODULES = ("torch", "torch._dynamo", "torch.distributed.fsdp", "torchmetrics")
"""None of them looks at Lightning or at the shim."""


class Preloaded:
    """Starts the parent, which ends soon after this process."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="preload-")
        self._address = str(Path(self._directory.name, "socket"))
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("LIGHTNING", "_LIGHTNING", "PYTHONPATH"))}
        self._parent = subprocess.Popen(
            [sys.executable, __file__, self._address],
            env={**inherited, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,  # its end tells the parent that we are gone
            start_new_session=True,
        )
        deadline = time.monotonic() + 120
        while not Path(self._address).exists():
            if self._parent.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the process that preloads torch did not start: status {self._parent.poll()}")
            time.sleep(0.05)

    def execute(self, program: Path, variables: dict[str, str], timeout: float, cwd: str) -> tuple[int, str]:
        """Run a program; returns its exit status (124 if it ran out of time) and its output, stdout and stderr."""
        with tempfile.NamedTemporaryFile("r", errors="replace") as output, socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._address)
            request = {"program": str(program), "variables": variables, "cwd": cwd, "output": output.name}
            connection.sendall(json.dumps(request).encode() + b"\n")
            answers = connection.makefile("r")
            group = int(answers.readline())
            connection.settimeout(timeout)
            try:
                status = int(answers.readline())
            except TimeoutError:
                status = 124
            finally:
                try:
                    os.killpg(group, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return status, output.read()


def _serve(address: str) -> Optional[dict[str, Any]]:
    """Fork a process per request. Returns the request in that process, and ``None`` in the parent at its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address + ".new")
    listener.listen(64)
    os.rename(address + ".new", address)
    listener.settimeout(1)
    os.set_blocking(0, False)
    while True:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            try:
                if os.read(0, 1) == b"":
                    return None
            except BlockingIOError:
                pass
            continue
        if os.fork() == 0:
            listener.close()
            return _keep(connection)
        connection.close()


def _keep(connection: socket.socket) -> Optional[dict[str, Any]]:
    """Fork the scenario, tell the client its process group, wait for it and tell its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection.settimeout(None)
    request = json.loads(connection.makefile("r").readline())
    ready, go = os.pipe()
    process = os.fork()
    if process == 0:
        connection.close()
        os.close(go)
        os.setsid()
        os.read(ready, 1)
        os.close(ready)
        return dict(request)
    os.close(ready)
    connection.sendall(b"%d\n" % process)
    os.close(go)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    try:
        connection.sendall(b"%d\n" % status)
    except BrokenPipeError:
        pass
    os._exit(0)


def _become(request: dict[str, Any]) -> str:
    """Make this process what ``python PROGRAM`` would be at its first line; returns the source."""
    output = os.open(request["output"], os.O_WRONLY | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["variables"])
    program = Path(request["program"])
    entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [str(program.parent), *entries, *sys.path[1:]]
    sys.argv[:] = [str(program)]
    import warnings

    for option in filter(None, reversed(os.environ.get("PYTHONWARNINGS", "").split(","))):
        action, _, rest = option.partition(":")
        warnings.filterwarnings(action, message=rest.split(":")[0])  # type: ignore[arg-type]
    return program.read_text()


if __name__ == "__main__":
    import importlib

    for _name in MODULES:
        importlib.import_module(_name)
    _request = _serve(sys.argv[1])
    if _request is not None:
        _source = _become(_request)
        for _name in [name for name in globals() if not name.startswith("__") and name not in ("_source",)]:
            del globals()[_name]
        import sys

        __file__ = sys.argv[0]
        __doc__ = None
        del sys
        exec(compile(globals().pop("_source"), __file__, "exec"))
