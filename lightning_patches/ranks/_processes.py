"""State of this node's processes: if they are alive, how they ended, if they work, and their stacks."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import tempfile
import time
from dataclasses import dataclass
from typing import Iterable, Optional

from lightning_patches import system
from lightning_patches.ranks import _node, _sockets

_FILE = "lightning_patches stacks"
_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "in uninterruptible sleep: it waits for a disk, a network filesystem or a driver",
    "T": "stopped by a signal",
    "t": "stopped by a debugger",
    "Z": "dead, not yet collected by its parent",
}
_HINTS = {"T": "SIGSTOP or SIGTSTP; `kill -CONT` continues it"}
_REQUESTS_TO_END = ("SIGTERM", "SIGINT", "SIGHUP")
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_MAX_RECORDS = 100_000
_MIN_IO_RATE = 10_000
"""A process that reads and writes at least so many bytes per second works. A process that polls a small file stays
below this rate."""
_MIN_TRAFFIC = 100
"""A process works if its connections carry at least so many bytes per second. Keep-alive messages stay below this
rate."""


def start_time(pid: int) -> Optional[int]:
    """Return the start time in clock ticks since boot, or ``None`` if the process is gone.

    The pid and the start time identify a process, since pids are reused.
    """
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def in_seconds(started: int) -> float:
    """Convert the result of :func:`start_time` to seconds since boot."""
    return started / _TICKS


def is_gone(pid: int, started: Optional[int]) -> bool:
    """True if a process has ended. Without ``/proc``, a zombie counts as alive until its parent collects it."""
    fields = _stat(pid)
    if not fields and not _stat(os.getpid()):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # the process exists and belongs to another user
        return False
    return not fields or fields[0] in "ZX" or (started is not None and int(fields[19]) != started)


@dataclass(frozen=True)
class Condition:
    """State of a process.

    Args:
        words: ``"the process is stopped by a signal"``.
        hint: explanation or advice.
    """

    words: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.words} ({self.hint})" if self.hint else self.words


def condition(pid: int, started: Optional[int]) -> Condition:
    """Return the state of a process."""
    status = wait_status(pid, started)
    if status is not None:
        return Condition(describe_status(status))
    fields = _stat(pid)
    if not fields:
        return Condition("it is gone" if is_gone(pid, started) else "the process lives")
    if started is not None and int(fields[19]) != started:
        return Condition("it is gone")
    return Condition(f"the process is {_STATES.get(fields[0], fields[0])}", _HINTS.get(fields[0], ""))


def wait_status(pid: int, started: Optional[int]) -> Optional[int]:
    """Return the exit status of a process in the form of ``os.wait``, or ``None`` if it is not available.

    The status remains available to the parent.
    """
    with contextlib.suppress(OSError, AttributeError):
        result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if result is not None:
            return result.si_status << 8 if result.si_code == os.CLD_EXITED else result.si_status
    fields = _stat(pid)
    if fields and fields[0] == "Z" and len(fields) > 49 and (started is None or int(fields[19]) == started):
        return int(fields[49])
    return None


def describe_status(status: int) -> str:
    """``"it was killed by signal 9 (SIGKILL)"``"""
    if not os.WIFSIGNALED(status):
        return f"it exited with status {status >> 8}"
    number = os.WTERMSIG(status)
    return f"it was killed by signal {number} ({_name_of(number) or 'a signal without a name'})"


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def crashed(status: Optional[int]) -> bool:
    """True if a signal other than a request to end (such as SIGTERM) killed the process."""
    return status is not None and os.WIFSIGNALED(status) and _name_of(os.WTERMSIG(status)) not in _REQUESTS_TO_END


def killed_for_memory() -> int:
    """Return the number of processes that the OOM killer of this node has killed since boot."""
    with contextlib.suppress(OSError, ValueError), open("/proc/vmstat", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)
    return 0


def is_victim(pid: int, started: Optional[int]) -> bool:
    """True if the OOM killer killed this process, by the kernel's log.

    False if the log is not readable (``dmesg_restrict``), and in containers, whose pids differ from those in the log.
    """
    with contextlib.suppress(OSError):
        log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            for _ in range(_MAX_RECORDS):
                head, _, text = os.read(log, 8192).partition(b";")  # one record; raises BlockingIOError at the end
                if b"Killed process %d (" % pid in text:
                    microseconds = int(head.split(b",")[2])
                    if started is None or microseconds / 1e6 >= started / _TICKS:
                        return True
        except (ValueError, IndexError):
            pass  # unknown record format
        finally:
            os.close(log)
    return False


def ranks_by_environment(port: str) -> list[tuple[int, int, int]]:
    """Return this user's processes on this node that were started as ranks of the job with this ``MASTER_PORT``.

    Returns:
        ``(rank, pid, start time)``, oldest first.
    """
    found = []
    for pid in _all_pids():
        if pid == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = dict(item.partition(b"=")[::2] for item in file.read().split(b"\0"))
        except OSError:
            continue
        if variables.get(b"MASTER_PORT") != port.encode():
            continue
        rank = variables.get(b"RANK") or (variables.get(b"LOCAL_RANK") if variables.get(b"NODE_RANK") == b"0" else None)
        started = start_time(pid)
        if rank is not None and rank.isdigit() and started is not None:
            found.append((int(rank), pid, started))
    return sorted(found, key=lambda item: item[2])


def end(pid: int, started: Optional[int], ranks: Iterable[int] = ()) -> None:
    """Kill a process and its children, except those in ``ranks``. Does nothing if the pid has been reused."""
    if not is_gone(pid, started):
        for one in (*descendants(pid, ranks), pid):
            with contextlib.suppress(OSError):
                os.kill(one, signal.SIGKILL)


def name(pid: int) -> str:
    """Return the name of a process, such as ``"python"``; "" if it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()
    return ""


def program(pid: int) -> str:
    """Return the path of a process's executable, which changes with ``exec``; "" if it is not readable."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe")
    return ""


def other_thread(pid: int) -> int:
    """Return the id of a thread other than the main thread, or the main thread's if there is no other."""
    with contextlib.suppress(OSError):
        return max(int(thread) for thread in os.listdir(f"/proc/{pid}/task"))
    return pid


def descendants(pid: int, but: Iterable[int] = ()) -> list[int]:
    """Return all descendants of a process, without those in ``but`` and their descendants."""
    parents: dict[int, list[int]] = {}
    for other in _all_pids():
        fields = _stat(other)
        if fields:
            parents.setdefault(int(fields[1]), []).append(other)
    left_out, found, todo = set(but), [], [pid]
    while todo:
        children = [child for child in parents.get(todo.pop(), []) if child not in left_out]
        found += children
        todo += children
    return found


def ancestors(pid: int) -> list[int]:
    """Return the ancestors of a process, the parent first."""
    found: list[int] = []
    while (fields := _stat(pid)) and (pid := int(fields[1])) > 0:
        found.append(pid)
    return found


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []


def _stat(pid: int, thread: Optional[int] = None) -> list[str]:
    """Return the fields of ``/proc/<pid>/stat`` from the state on; empty without that process or ``/proc``."""
    try:
        path = f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat"
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


@dataclass(frozen=True)
class Work:
    """Counters of a process and its children at one time.

    Args:
        at: the time, in seconds.
        cpu: CPU time in seconds.
        moved: bytes read and written.
        carried: bytes per TCP connection, by inode, without the connections between ranks.
        has_uncounted: True if there are sockets without byte counters.
        switches: number of voluntary context switches. It grows with each wake-up of a thread.
        running: True if a thread runs, or waits for a CPU of an overloaded node.
    """

    at: float
    cpu: float
    moved: int
    carried: dict[int, int]
    has_uncounted: bool
    switches: int
    running: bool = False

    def since(self, before: Work) -> bool:
        """True if the counters show work since ``before``. Wake-ups do not count as work."""
        carried = sum(max(0, count - before.carried.get(inode, 0)) for inode, count in self.carried.items())
        return self.is_busy_since(before) or carried >= _MIN_TRAFFIC * (self.at - before.at)

    def is_busy_since(self, before: Work) -> bool:
        """True if the process has computed, read or written since ``before``. Polling does not count."""
        seconds = self.at - before.at
        if self.running and before.running:
            return True
        return self.cpu - before.cpu >= 0.1 * seconds or self.moved - before.moved >= _MIN_IO_RATE * seconds

    def may_have_worked_since(self, before: Work) -> bool:
        """True if the process woke up often, which may be due to traffic of sockets without byte counters."""
        return self.has_uncounted and self.switches - before.switches >= 0.5 * (self.at - before.at)


def work(pid: int, watchers: Iterable[int] = (), ranks: Iterable[int] = (), connections: Iterable[int] = ()) -> Work:
    """Return the counters of a process and its children.

    Args:
        pid: the process.
        watchers: ids of threads to leave out: those of the hang watch.
        ranks: processes to leave out: other ranks.
        connections: inodes of sockets to leave out: those of the hang watch.
    """
    at = time.monotonic()
    ranks, watchers = list(ranks), set(watchers)
    cpu, moved, switches, running = 0.0, 0, 0, False
    sockets: set[int] = set()
    for one in (pid, *descendants(pid, ranks)):
        fields = _stat(one)
        cpu, running = cpu + _cpu(fields), running or fields[:1] == ["R"]
        moved += _moved(f"/proc/{one}/io")
        switches += sum(_switches(one, thread) for thread in _threads(one) if thread not in watchers)
        sockets |= _sockets.of_process(one)
    for thread in watchers:
        cpu -= _cpu(_stat(pid, thread), children=False)
        moved -= _moved(f"/proc/{pid}/task/{thread}/io")
    carried, has_uncounted = _sockets.traffic(sockets.difference(connections), ranks, os.environ.get("MASTER_PORT", ""))
    return Work(at, cpu, moved, carried, has_uncounted, switches, running)


def works(pid: int, ranks: Iterable[int] = (), seconds: float = 1.2, watchers: Iterable[int] = ()) -> Optional[bool]:
    """Observe a process and its children, without other ranks.

    Returns:
        True if they work; ``None`` if that is unknown.
    """
    ranks = list(ranks)
    before = work(pid, watchers, ranks)
    time.sleep(seconds)
    after = work(pid, watchers, ranks)
    return True if after.since(before) else None if after.may_have_worked_since(before) else False


def _threads(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    return []


def _switches(pid: int, thread: int) -> int:
    found = (value for name, value in _lines(f"/proc/{pid}/task/{thread}/status") if name == "voluntary_ctxt_switches")
    return int(next(found, 0))


def _cpu(fields: list[str], children: bool = True) -> float:
    ticks = fields[11:15] if children else fields[11:13]  # fields 13 and 14 are those of children that have ended
    return sum(map(int, ticks)) / _TICKS


def _moved(path: str) -> int:
    counted = ("rchar", "wchar", "read_bytes", "write_bytes")
    return sum(int(value) for name, value in _lines(path) if name in counted)


def _lines(path: str) -> list[tuple[str, str]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            split = [line.partition(":") for line in file]
    except OSError:
        return []
    return [(name, value.strip()) for name, _, value in split]


class Dump:
    """Let other processes of this node get the stack of this process, even while C code holds the GIL.

    Registers an unused signal with :mod:`faulthandler`, which writes to an unnamed file (in memory if possible).
    Another process sends the signal and reads the file through ``/proc``. If this is impossible, ``signal`` is 0.
    """

    def __init__(self) -> None:
        self._signal, self.file = 0, -1
        if system.lacks(("/proc/self/status", "faulthandler.register", "signal.SIGRTMAX", "signal.SIGRTMIN")):
            return
        used = _signals(os.getpid(), "SigCgt", "SigIgn", "SigBlk")
        for number in range(signal.SIGRTMAX - 5, signal.SIGRTMIN + 1, -1):
            if not used >> (number - 1) & 1:
                try:
                    self.file = _nameless_file()
                except OSError:
                    return
                faulthandler.register(number, file=self.file, all_threads=True)
                self._signal = number  # never unregistered, since a pending signal would then kill the process
                return

    @property
    def signal(self) -> int:
        """The signal's number; 0 if the program has replaced the handler."""
        return self._signal if self._signal and signal.getsignal(self._signal) == signal.SIG_DFL else 0


def _nameless_file() -> int:
    with contextlib.suppress(AttributeError, OSError):  # Python may lack memfd_create, or the system may forbid it
        return os.memfd_create(_FILE)
    file, path = tempfile.mkstemp(prefix=_FILE, dir=_node.directory())
    os.unlink(path)
    return file


def _signals(pid: int, *kinds: str) -> int:
    """Return a mask of signals that are handled (``"SigCgt"``), ignored (``"SigIgn"``) or blocked (``"SigBlk"``)."""
    used = 0
    for kind, value in _lines(f"/proc/{pid}/status"):
        if kind in kinds:
            used |= int(value, 16)
    return used


def stack_from_outside(pid: int, started: Optional[int], thread: int, number: int, file: int) -> str:
    """Return the stack that a :class:`Dump` in another process of this node writes; "" if it writes none.

    The hang watch's thread in that process gets the signal, so that no system call of the user's code is interrupted.
    """
    path = f"/proc/{pid}/fd/{file}"
    try:
        tgkill = ctypes.CDLL(None, use_errno=True).tgkill  # glibc 2.30 and later
        if not number or is_gone(pid, started) or _FILE not in os.readlink(path):
            return ""
        if not _signals(pid, "SigCgt") >> (number - 1) & 1:
            return ""  # the handler is gone: the signal would kill the process
        size = os.stat(path).st_size
        if tgkill(pid, thread, number):
            return ""
        text = ""
        for _ in range(10):
            time.sleep(0.05)
            with open(path, "rb") as found:
                found.seek(size)
                fresh = found.read().decode(errors="replace")
            if fresh and fresh == text:
                break
            text = fresh
        threads = text.strip().split("\n\n")
        return "\n\n".join(t for t in threads if "/lightning_patches/ranks/hang/" not in t.replace("\\", "/"))
    except (OSError, AttributeError):
        return ""
