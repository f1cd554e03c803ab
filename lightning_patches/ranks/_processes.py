"""What the system knows of processes of this node: whether they live, how they ended, and whether they work."""

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
_HINTS = {"T": "SIGSTOP or SIGTSTP; `kill -CONT` lets it go on"}
_ENDED_BY_SOMEBODY = ("SIGTERM", "SIGINT", "SIGHUP")
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_MOST_RECORDS = 100_000
_LEAST_MOVED = 10_000
"""Bytes a second. To look again and again at a small file is no work."""
_LEAST_CARRIED = 100
"""Bytes a second, of all connections. What says no more than that it is still there moves no data."""


# ---------------------------------------------------------------- one process


def start_time(pid: int) -> Optional[int]:
    """When a process began, in clock ticks since boot: with the pid it identifies a process. ``None`` if gone."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def in_seconds(started: int) -> float:
    """What :func:`start_time` says, in seconds since boot."""
    return started / _TICKS


def is_gone(pid: int, started: Optional[int]) -> bool:
    """Whether a process has ended. Without ``/proc`` one counts as there until its parent has collected it."""
    fields = _stat(pid)
    if not fields and not _stat(os.getpid()):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # it is there, and another user's
        return False
    return not fields or fields[0] in "ZX" or (started is not None and int(fields[19]) != started)


@dataclass(frozen=True)
class Condition:
    """What the system says of a process.

    Args:
        words: ``"the process is stopped by a signal"``.
        hint: what is to be known of that, or done about it.
    """

    words: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.words} ({self.hint})" if self.hint else self.words


def condition(pid: int, started: Optional[int]) -> Condition:
    """What the system says of a process."""
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
    """How a process has ended, as ``os.wait`` tells it, if that can still be found out.

    The status stays there for whoever waits for the process.
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
    """Whether a process was killed by a signal that is not a request to end, as SIGTERM is."""
    return status is not None and os.WIFSIGNALED(status) and _name_of(os.WTERMSIG(status)) not in _ENDED_BY_SOMEBODY


def killed_for_memory() -> int:
    """How many processes the kernel of this node has killed since it started because memory had run out."""
    with contextlib.suppress(OSError, ValueError), open("/proc/vmstat", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)
    return 0


def is_victim(pid: int, started: Optional[int]) -> bool:
    """Whether the kernel's log says that its OOM killer has killed this process.

    False where the log may not be read (``dmesg_restrict``), and in containers, where the log has other pids.
    """
    with contextlib.suppress(OSError):
        log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            for _ in range(_MOST_RECORDS):
                head, _, text = os.read(log, 8192).partition(b";")  # one record; at the end BlockingIOError
                if b"Killed process %d (" % pid in text:
                    microseconds = int(head.split(b",")[2])
                    if started is None or microseconds / 1e6 >= started / _TICKS:
                        return True
        except (ValueError, IndexError):
            pass  # not a record as we know them
        finally:
            os.close(log)
    return False


def ranks_by_environment(port: str) -> list[tuple[int, int, int]]:
    """Processes of this user and node that were started as ranks of the job with this ``MASTER_PORT``.

    Returns:
        ``(rank, pid, start time)``, those that began first coming first.
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
    """Kill a process, if it still is the one that is meant, and its children, but for those that are ranks."""
    if not is_gone(pid, started):
        for one in (*descendants(pid, ranks), pid):
            with contextlib.suppress(OSError):
                os.kill(one, signal.SIGKILL)


def name(pid: int) -> str:
    """What the system calls a process, ``"python"``; "" if it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()
    return ""


def program(pid: int) -> str:
    """The file that a process executes, which changes where it replaces itself; "" if that can't be seen."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe")
    return ""


def thread_beside(pid: int) -> int:
    """A thread of a process besides its main one, if it has any."""
    with contextlib.suppress(OSError):
        return max(int(thread) for thread in os.listdir(f"/proc/{pid}/task"))
    return pid


def descendants(pid: int, but: Iterable[int] = ()) -> list[int]:
    """Children of a process, their children, and so on; without those in ``but`` and what is below them."""
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
    """Parent of a process, its parent, and so on."""
    found: list[int] = []
    while (fields := _stat(pid)) and (pid := int(fields[1])) > 0:
        found.append(pid)
    return found


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []


def _stat(pid: int, thread: Optional[int] = None) -> list[str]:
    """Fields of ``/proc/<pid>/stat`` from the state on; none if there is no such process, or no ``/proc``."""
    try:
        path = f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat"
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


# ---------------------------------------------------------------- does it work?


@dataclass(frozen=True)
class Work:
    """What a process and its children had done at a moment.

    Args:
        at: the moment, in seconds.
        cpu: seconds of CPU.
        moved: bytes read and written.
        carried: bytes that each TCP connection has carried, by its inode; without what ranks say to each other.
        veiled: there are sockets of which the kernel does not tell what they carry.
        switches: how often their threads have gone to sleep, which is as often as they were woken.
        running: one of them runs, or would if a processor were free, on a node with more processes than processors.
    """

    at: float
    cpu: float
    moved: int
    carried: dict[int, int]
    veiled: bool
    switches: int
    running: bool = False

    def since(self, before: Work) -> bool:
        """Whether it has worked since then, as far as can be seen from outside. To wake up is no work."""
        carried = sum(max(0, count - before.carried.get(inode, 0)) for inode, count in self.carried.items())
        return self.is_busy_since(before) or carried >= _LEAST_CARRIED * (self.at - before.at)

    def is_busy_since(self, before: Work) -> bool:
        """Whether it has computed, read or written. One that asks again and again whether to go on has not."""
        seconds = self.at - before.at
        if self.running and before.running:
            return True
        return self.cpu - before.cpu >= 0.1 * seconds or self.moved - before.moved >= _LEAST_MOVED * seconds

    def may_have_worked_since(self, before: Work) -> bool:
        """Whether it was woken, and has sockets that may be why."""
        return self.veiled and self.switches - before.switches >= 0.5 * (self.at - before.at)


def work(pid: int, watchers: Iterable[int] = (), ranks: Iterable[int] = (), connections: Iterable[int] = ()) -> Work:
    """What a process and its children have done.

    Args:
        pid: the process.
        watchers: threads of it that do not count: ours.
        ranks: processes that do not count, children or not, since they are ranks of their own.
        connections: inodes of sockets that do not count: ours.
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
    carried, veiled = _sockets.traffic(sockets.difference(connections), ranks, os.environ.get("MASTER_PORT", ""))
    return Work(at, cpu, moved, carried, veiled, switches, running)


def works(pid: int, ranks: Iterable[int] = (), seconds: float = 1.2, watchers: Iterable[int] = ()) -> Optional[bool]:
    """Whether a process works, or a child of it that is no rank. Takes ``seconds`` to find out.

    Returns:
        ``None`` if that can't be told.
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
    ticks = fields[11:15] if children else fields[11:13]  # those of children that have ended, too
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


# ---------------------------------------------------------------- stacks without the GIL


class Dump:
    """Lets others of this node make this process write its stack, even while it holds the GIL and runs no Python.

    A signal that nothing uses is given to :mod:`faulthandler`, which writes into a file without a name, in memory where
    this Python can make one there; others read it through ``/proc``. Where that is not possible, ``signal`` is 0.
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
                self._signal = number  # for good: without the handler it would kill, and one may be on its way
                return

    @property
    def signal(self) -> int:
        """0 where the program has given it a handler of its own since, which is not to be called."""
        return self._signal if self._signal and signal.getsignal(self._signal) == signal.SIG_DFL else 0


def _nameless_file() -> int:
    with contextlib.suppress(AttributeError, OSError):  # this Python knows an older glibc, or it is forbidden here
        return os.memfd_create(_FILE)
    file, path = tempfile.mkstemp(prefix=_FILE, dir=_node.directory())
    os.unlink(path)
    return file


def _signals(pid: int, *kinds: str) -> int:
    """A process's signals, a mask: with a handler (``"SigCgt"``), ignored (``"SigIgn"``), blocked (``"SigBlk"``)."""
    used = 0
    for kind, value in _lines(f"/proc/{pid}/status"):
        if kind in kinds:
            used |= int(value, 16)
    return used


def stack_from_outside(pid: int, started: Optional[int], thread: int, number: int, file: int) -> str:
    """The stack that a :class:`Dump` in another process of this node writes; "" if it does not.

    The signal goes to the watch's own thread of that process, so that it interrupts no system call of the user's code.
    """
    path = f"/proc/{pid}/fd/{file}"
    try:
        tgkill = ctypes.CDLL(None, use_errno=True).tgkill  # glibc 2.30 and later
        if not number or is_gone(pid, started) or _FILE not in os.readlink(path):
            return ""
        if not _signals(pid, "SigCgt") >> (number - 1) & 1:
            return ""  # no handler is there any more: the signal would kill
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
