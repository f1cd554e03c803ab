"""Scenario processes that are forked from one that has imported torch, for runs of many arms.

Most of a scenario's time is spent on importing torch. Each one still gets a process of its own, in which Lightning
and the shim are imported anew, from the release of its arm; only torch and torchmetrics are there already. Ranks that
a scenario starts by itself are ordinary processes.

Run as a program, this file is that parent: ``python preload.py SOCKET``.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import warnings
from pathlib import Path
from typing import Any, Optional

if __name__ != "__main__":  # run as a program, the package is not in reach, nor needed
    from tests.support import groups

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
            status = 124
            try:
                status = int(answers.readline())
            except TimeoutError:
                pass
            finally:
                groups.end(group, patience=0 if status else 20)
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
    for option in filter(None, reversed(os.environ.get("PYTHONWARNINGS", "").split(","))):
        action, _, rest = option.partition(":")
        warnings.filterwarnings(action, message=rest.split(":")[0])  # type: ignore[arg-type]
    return program.read_text()


def _execute(source: str) -> int:
    """Execute the program as ``__main__``, with errors told as Python tells them; returns the exit status."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__, __file__=sys.argv[0], __cached__=None)
    sys.modules["__main__"] = main
    try:
        exec(compile(source, sys.argv[0], "exec"), main.__dict__)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 255
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        seen = error.__traceback__.tb_next if error.__traceback__ else None  # from the program's first frame on
        sys.excepthook(type(error), error.with_traceback(seen), seen)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _end(status: int) -> None:
    """End as the interpreter does, but for taking torch to pieces, which takes longer than most scenarios."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


if __name__ == "__main__":
    for name in MODULES:
        importlib.import_module(name)
    gc.freeze()  # the collector need not look at what is here in each child
    received = _serve(sys.argv[1])
    if received is not None:
        _end(_execute(_become(received)))
