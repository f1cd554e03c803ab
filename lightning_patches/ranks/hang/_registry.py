"""Records of a job's ranks on this node: their processes, how to get their stacks, and a secret.

The records are files in a directory that only this user can write to. If a rank is requested to examine or end another
rank, it finds the process only in these records.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import Optional

from lightning_patches.ranks import _node, _processes
from lightning_patches.ranks.hang import _files, _wire
from lightning_patches.ranks.hang._messages import LONGEST_CHILD, MOST_CHILDREN

THREADS = "lightning_patches hang"
"""Prefix of the names of the hang watch's threads."""
_OLD = 3600.0
_OLD_REPORT = 86400.0
_PATIENCE_FOR_CHILDREN = 1.5
_MOST_FRAMES_OUTSIDE = 8


@dataclass(frozen=True)
class Record:
    """The process of a rank.

    Args:
        rank: the rank; ``None`` while only the local rank is known.
        pid: pid of the process.
        started: its start time, see :func:`lightning_patches.ranks._processes.start_time`.
        thread: id of the hang watch's thread.
        signal: number of the signal that makes the process write its stack; 0 if there is none.
        file: descriptor of the file with the stack.
        program: path of the executable.
    """

    rank: Optional[int]
    pid: int
    started: Optional[int]
    thread: int
    signal: int
    file: int
    program: str = ""

    @property
    def gone(self) -> bool:
        return _processes.is_gone(self.pid, self.started)


@dataclass(frozen=True)
class Outside:
    """The state of a rank, examined by another process of its node.

    Args:
        cause: description of the state.
        hint: explanation or advice.
        stack: the rank's stack; "" if it wrote none.
        works: True if the rank uses the CPU, reads, writes, sends or receives.
        unclear: True if it is unknown if the rank works.
        gone: True if the rank has ended.
        crashed: True if a signal other than a request to end killed the rank.
        failed: True if a signal killed the rank, or its exit status is an error.
        for_memory: True if the OOM killer has or may have killed the rank.
        seen: True if the process could be examined.
        children: see :meth:`Job.children`.
    """

    cause: str
    hint: str = ""
    stack: str = ""
    works: bool = False
    unclear: bool = False
    gone: bool = False
    crashed: bool = False
    failed: bool = False
    for_memory: bool = False
    seen: bool = True
    children: list[str] = field(default_factory=list)

    @property
    def condition(self) -> _processes.Condition:
        return _processes.Condition(self.cause, self.hint)

    @property
    def frames(self) -> list[str]:
        """The innermost frames of the main thread, innermost last. :mod:`faulthandler` writes the main thread last."""
        lines = self.stack.rpartition("\n\n")[2].split("\n")
        return [line.strip() for line in lines if line.startswith("  File")][:_MOST_FRAMES_OUTSIDE][::-1]


class Job:
    """The job's files on this node.

    Args:
        key: the same in all ranks of the job.

    Raises:
        OSError: no private directory is available.
    """

    def __init__(self, key: str) -> None:
        self.path = _node.directory("jobs", _node.digest(f"{key}\n{_node.node_id()}"))
        self.socket = os.path.join(self.path, "hub")
        self.ooms = _processes.killed_for_memory()

    def secret(self) -> bytes:
        """Return the secret that the processes of this user on this node share."""
        return _file_of_secret(os.path.join(self.path, "secret"))

    def register(self, local_rank: int, record: Record) -> bool:
        """Register this process as the rank. Return False if another live process is registered as this rank."""
        known = self.record(local_rank)
        if known is not None and known.pid != record.pid and not known.gone:
            return False
        if known != record:
            path = self._path(local_rank)
            _write(f"{path}.{record.pid}", json.dumps(asdict(record)).encode())
            os.replace(f"{path}.{record.pid}", path)
        return True

    def forget(self, local_rank: int) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(local_rank))

    def record(self, local_rank: int) -> Optional[Record]:
        return _read(self._path(local_rank))

    def records(self) -> list[Record]:
        """Return the records of all ranks of this node, running or not."""
        return _records(self.path)

    def examine(self, local_rank: int, lives: bool) -> Outside:
        """Examine a rank of this node. Takes about two seconds if the rank is alive.

        Args:
            local_rank: the rank.
            lives: also get the rank's stack and its child processes.
        """
        record = self.record(local_rank)
        if record is None:
            return Outside("its process is unknown", seen=False)
        condition = _processes.condition(record.pid, record.started)
        if record.gone:
            cause = condition.words
            status = _processes.wait_status(record.pid, record.started)
            ooms = _processes.killed_for_memory() - self.ooms
            is_victim = status == signal.SIGKILL and _processes.is_victim(record.pid, record.started)
            for_memory = is_victim or (status == signal.SIGKILL and ooms > 0)
            if is_victim:
                cause += ", by the kernel's OOM killer"
            elif for_memory:
                many = f"{ooms} process{'es' if ooms > 1 else ''}"
                cause += f", perhaps by the kernel's OOM killer: it has killed {many} here since the watch started"
            crashed = _processes.crashed(status)
            return Outside(cause, gone=True, crashed=crashed, failed=bool(status), for_memory=for_memory)
        if record.program and (program := _processes.program(record.pid)) not in ("", record.program):
            condition = _processes.Condition(f"it has replaced itself by {os.path.basename(program)}")
        found = _processes.works(record.pid, self._others(record.pid), watchers=[record.thread])
        works, unclear = bool(found), found is None
        if not lives:
            return Outside(condition.words, condition.hint, works=works, unclear=unclear)
        stack = _processes.stack_from_outside(record.pid, record.started, record.thread, record.signal, record.file)
        children = self.children(local_rank)
        return Outside(condition.words, condition.hint, stack, works, unclear, children=children)

    def children(self, local_rank: int) -> list[str]:
        """Describe the child processes of a rank of this node, such as a DataLoader's workers.

        A forked child writes its stack at the same signal as its rank. It has no thread of the hang watch, so the
        signal may interrupt a system call of its C code. Use this only for ranks that make others wait.
        """
        record = self.record(local_rank)
        found: list[str] = []
        end = time.monotonic() + _PATIENCE_FOR_CHILDREN
        for pid in _processes.descendants(record.pid, self._others(record.pid)) if record is not None else []:
            if len(found) == MOST_CHILDREN or time.monotonic() > end:
                break
            state = f"child process {pid} ({_processes.name(pid)}): {_processes.condition(pid, None)}."
            started, thread = _processes.start_time(pid), _processes.other_thread(pid)
            assert record is not None
            stack = _processes.stack_from_outside(pid, started, thread, record.signal, record.file)
            found.append(f"{state}\n{stack}".rstrip()[:LONGEST_CHILD])
        return found

    def end(self, local_rank: int) -> None:
        """Kill a rank of this node, and its children."""
        record = self.record(local_rank)
        if record is not None and record.pid != os.getpid():
            _processes.end(record.pid, record.started, self._others(record.pid))

    def end_children(self) -> None:
        """Kill the children of this process, such as a DataLoader's workers, but not other ranks."""
        for pid in _processes.descendants(os.getpid(), self._others(os.getpid())):
            _processes.end(pid, None)

    def work(self) -> _processes.Work:
        """Return the counters of this process and its children, without those of the hang watch."""
        watchers = [thread.native_id for thread in threading.enumerate() if thread.name.startswith(THREADS)]
        return _processes.work(os.getpid(), [one for one in watchers if one], self._others(os.getpid()), _wire.inodes())

    def sweep(self) -> None:
        """Remove files of jobs that have ended, and reports that are older than a day or exceed the size limit."""
        jobs = os.path.dirname(self.path)
        for name in os.listdir(jobs):
            path = os.path.join(jobs, name)
            with contextlib.suppress(OSError):
                is_old = path != self.path and time.time() - os.stat(path).st_mtime > _OLD
                if is_old and all(record.gone for record in _records(path)):
                    shutil.rmtree(path)
        reports = []
        for entry in os.scandir(_node.directory(_node.REPORTS)):
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                reports.append((found.st_mtime, found.st_size, entry.path))
        total = 0
        for written, size, path in sorted(reports, reverse=True):
            total += size
            with contextlib.suppress(OSError):
                if time.time() - written > _OLD_REPORT or total > _files.MOST // 2:
                    os.unlink(path)

    def _others(self, pid: int) -> list[int]:
        """Return the pids of other ranks. Lightning's launcher makes them children of rank zero."""
        return [record.pid for record in self.records() if record.pid != pid]

    def _path(self, local_rank: int) -> str:
        return os.path.join(self.path, f"rank-{local_rank}")


def _records(path: str) -> list[Record]:
    names = [name for name in os.listdir(path) if name.startswith("rank-") and name[5:].isdigit()]
    found = [_read(os.path.join(path, name)) for name in names]
    return [record for record in found if record is not None]


def _read(path: str) -> Optional[Record]:
    try:
        with open(path, encoding="ascii") as file:
            return Record(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None


def _file_of_secret(path: str) -> bytes:
    """Read the secret from the file. The first process creates the file."""
    if not os.path.exists(path):
        made = f"{path}.{os.getpid()}"
        _write(made, secrets.token_hex(32).encode())
        with contextlib.suppress(FileExistsError):
            os.link(made, path)
        os.unlink(made)
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
