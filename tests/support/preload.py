"""Scenario processes that are forked from one that has imported torch, for runs of many variants.

A scenario spends most of its time on the import and the teardown of torch. Each scenario still runs in its own
process, which imports Lightning (the release of its variant) and the shim itself; only Lightning's dependencies are
imported before the fork. Ranks that Lightning starts by running the program again are forked in the same way.

Run as a program, this file is that parent: ``python preload.py SOCKET``. For each scenario it forks an attendant, the
leader of the scenario's process group, which forks the main process and then waits for it and for its ranks.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib.util
import json
import os
import select
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
from typing import Any, Optional, Union

if __name__ != "__main__":  # a program cannot import the package, and does not need it
    from tests.support import run

MODULES = ("torch", "torch._dynamo", "torch.distributed.fsdp", "torchmetrics", "yaml", "fsspec")
"""None of them looks at Lightning or at the shim."""


class Preloaded:
    """The parent process of scenarios. It ends soon after this process.

    Args:
        variables: its environment, in which it imports torch.
        python: its interpreter.
        modules: modules to import besides :data:`MODULES`, for programs that all run in the same variant.
    """

    def __init__(self, variables: dict[str, str], python: str = sys.executable, modules: tuple[str, ...] = ()) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="preload-")
        self._address = str(Path(self._directory.name, "socket"))
        self._parent = subprocess.Popen(
            [python, __file__, self._address, *modules],
            env={**variables, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,  # the parent ends when this pipe is closed
            start_new_session=True,
        )
        deadline = time.monotonic() + 300
        while not Path(self._address).exists():
            if self._parent.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the process that preloads torch did not start: status {self._parent.poll()}")
            time.sleep(0.05)

    def close(self) -> None:
        """End the parent."""
        assert self._parent.stdin is not None
        self._parent.stdin.close()
        self._parent.wait(120)

    def execute(self, program: Path, variables: dict[str, str], timeout: float, cwd: str) -> tuple[int, str]:
        """Run a program; returns its exit status (124 if it ran out of time) and its output, stdout and stderr."""
        with tempfile.NamedTemporaryFile("r", errors="replace") as output, socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._address)
            request = {"arguments": [str(program)], "variables": variables, "cwd": cwd, "output": output.name}
            connection.sendall(json.dumps(request).encode() + b"\n")
            answers = connection.makefile("r")
            group = int(answers.readline())
            connection.settimeout(timeout)
            status = 124
            try:
                status = int(answers.readline())
            except socket.timeout:
                pass
            finally:
                run.end(group, patience=0 if status else 20)
            return status, output.read()


class _Forked:
    """The program to run in this process, and the link to its attendant."""

    def __init__(self, request: dict[str, Any], link: Optional[socket.socket] = None) -> None:
        self.request = request
        self.link = link


def _serve(address: str) -> Optional[_Forked]:
    """Fork an attendant per request. Returns in the processes of the scenarios, and with ``None`` at the end."""
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
        except socket.timeout:  # TimeoutError only since Python 3.10
            try:
                if os.read(0, 1) == b"":
                    return None
            except BlockingIOError:
                pass
            continue
        if os.fork() == 0:
            listener.close()
            return _attend(connection)
        connection.close()


def _attend(connection: socket.socket) -> _Forked:
    """Fork the main process and the ranks that it requests. Send process group and exit status to the client."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection.settimeout(None)
    os.setsid()
    request = json.loads(connection.makefile("r").readline())
    connection.sendall(b"%d\n" % os.getpid())
    link, far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    main = os.fork()
    if main == 0:
        connection.close()
        link.close()
        return _Forked(request, far_end)
    far_end.close()
    asked: list[socket.socket] = [connection, link]
    while True:
        for ready in select.select(asked, [], [], 0.01)[0]:
            message = b""
            with contextlib.suppress(ConnectionResetError):
                message = ready.recv(1 << 20)
            if ready is connection:  # the client is gone
                os.killpg(0, signal.SIGKILL)
            elif not message:
                asked.remove(link)
            else:
                rank = os.fork()
                if rank == 0:
                    connection.close()
                    link.close()
                    return _Forked({**json.loads(message), "output": request["output"]})
                link.send(json.dumps({"started": rank}).encode())
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            os._exit(0)
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        with contextlib.suppress(OSError):  # the client is gone
            if process == main:
                connection.sendall(b"%d\n" % code)
            elif process:
                link.send(json.dumps({"ended": process, "status": code}).encode())


class _Ranks:
    """The ranks of a main process, as it sees them."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._ended: dict[int, int] = {}

    def start(self, arguments: list[str], variables: dict[str, str], cwd: str) -> int:
        with self._lock:
            self._link.send(json.dumps({"arguments": arguments, "variables": variables, "cwd": cwd}).encode())
            while True:
                answer = self._receive()
                if "started" in answer:
                    return int(answer["started"])

    def status(self, process: int) -> Optional[int]:
        with self._lock:
            while select.select([self._link], [], [], 0)[0]:
                self._receive()
            return self._ended.get(process)

    def _receive(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._link.recv(1 << 16))
        if "ended" in answer:
            self._ended[answer["ended"]] = answer["status"]
        return answer


class _Rank:
    """The replacement of ``subprocess.Popen`` for a rank."""

    def __init__(self, ranks: _Ranks, args: list[str], variables: dict[str, str], cwd: str) -> None:
        self._ranks = ranks
        self.args = args
        self.returncode: Optional[int] = None
        self.pid = ranks.start(args[1:], variables, cwd)

    def poll(self) -> Optional[int]:
        if self.returncode is None:
            self.returncode = self._ranks.status(self.pid)
        return self.returncode

    def wait(self, timeout: Optional[float] = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if deadline is not None and timeout is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(0.01)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, signum: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, signum)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _fork_ranks(link: socket.socket) -> None:
    """Make ``subprocess.Popen`` fork if Lightning's launcher runs the program again; other commands start as usual."""
    ranks, real = _Ranks(link), subprocess.Popen
    command = [sys.executable, sys.argv[0]]

    class Popen(real):  # type: ignore[misc, valid-type]
        def __new__(cls, args: Any, *more: Any, **options: Any) -> Union[_Rank, Popen]:
            variables = options.get("env") or {}
            if not more and set(options) <= {"env", "cwd"} and args[:2] == command and "LOCAL_RANK" in variables:
                return _Rank(ranks, args, dict(variables), options.get("cwd") or os.getcwd())
            made: Popen = super().__new__(cls)
            return made

    subprocess.Popen = Popen  # type: ignore[misc]


def _become(request: dict[str, Any]) -> str:
    """Give this process the state of ``python PROGRAM`` at its first line. Return the source."""
    output = os.open(request["output"], os.O_WRONLY | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["variables"])
    program = Path(request["arguments"][0])
    entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [str(program.parent), *entries, *sys.path[1:]]
    sys.argv[:] = request["arguments"]
    for option in filter(None, os.environ.get("PYTHONWARNINGS", "").split(",")):
        warnings._setoption(option)  # type: ignore[attr-defined]
    return program.read_text()


def _execute(source: str) -> int:
    """Execute the program as ``__main__``, print errors as Python does, and return the exit status."""
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
    """End like the interpreter, but without the teardown of torch, which takes longer than most scenarios."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


if __name__ == "__main__":
    for name in (*MODULES, *sys.argv[2:]):
        if name != "torch._dynamo" or importlib.util.find_spec(name):  # torch 1.13 does not have it
            importlib.import_module(name)
    gc.freeze()  # the collector of each child can skip these objects
    forked = _serve(sys.argv[1])
    if forked is not None:
        source = _become(forked.request)
        if forked.link is not None:
            _fork_ranks(forked.link)
        _end(_execute(source))
