"""What can be known of a process from outside, of its collectives from torch, and of its GPUs from NVML."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from typing import Any, Iterator, Optional

_MEMORY_FILE = "/memfd:lightning_patches stacks"
_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "in uninterruptible sleep: it waits for a disk, a network filesystem or a driver",
    "T": "stopped by a signal (SIGSTOP or SIGTSTP; `kill -CONT` lets it go on)",
    "t": "stopped by a debugger",
    "Z": "dead, not yet collected by its parent",
}


# ---------------------------------------------------------------- processes


def start_time(pid: int) -> Optional[int]:
    """When a process began, in clock ticks since boot: with the pid it names a process for good. ``None`` if gone."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def process_state(pid: int, started: Optional[int]) -> str:
    """What the system says of a process of this host, in words."""
    ending = _ending_of_child(pid)
    if ending:
        return ending
    fields = _stat(pid)
    if not fields or (started is not None and int(fields[19]) != started):
        return "it is gone"
    status = int(fields[49]) if fields[0] == "Z" and len(fields) > 49 else 0
    if status:
        return _signalled(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else f"it exited with status {status >> 8}"
    return f"the process is {_STATES.get(fields[0], fields[0])}"


def is_gone(pid: int, started: Optional[int]) -> bool:
    """Whether a process of this host has ended."""
    fields = _stat(pid)
    return not fields or fields[0] in "ZX" or (started is not None and int(fields[19]) != started)


def is_at_work(pid: int, seconds: float = 1.0) -> bool:
    """Whether a process of this host uses the CPU. Takes ``seconds`` to find out that it does not."""
    first = _stat(pid)
    end = time.monotonic() + seconds
    while first and time.monotonic() < end:
        time.sleep(0.05)
        fields = _stat(pid)
        if not fields or fields[11:13] != first[11:13]:  # user and system time
            return bool(fields)
    return False


def ranks_by_environment(port: str) -> list[tuple[int, int, int]]:
    """Processes of this user and host that were started as ranks of the job with this ``MASTER_PORT``.

    Returns:
        ``(rank, pid, start time)``, those that began first coming first.
    """
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                variables = dict(item.partition(b"=")[::2] for item in file.read().split(b"\0"))
        except OSError:
            continue
        if variables.get(b"MASTER_PORT") != port.encode():
            continue
        rank = variables.get(b"RANK") or (variables.get(b"LOCAL_RANK") if variables.get(b"NODE_RANK") == b"0" else None)
        started = start_time(int(name))
        if rank is not None and rank.isdigit() and started is not None:
            found.append((int(rank), int(name), started))
    return sorted(found, key=lambda item: item[2])


def kill(pid: int, started: Optional[int]) -> None:
    """End a process of this host, if it is still the one that is meant, and is or was started as a rank."""
    if not is_gone(pid, started) and _is_rank(pid):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _is_rank(pid: int) -> bool:
    """Orders to end a process come over the network: whoever gives them, they hold for ranks only."""
    try:
        descriptors = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
        with open(f"/proc/{pid}/environ", "rb") as file:
            port = f"\0MASTER_PORT={os.environ.get('MASTER_PORT', '')}\0".encode()
            started_for_it = port in b"\0" + file.read() + b"\0"
    except OSError:
        return False
    return started_for_it or any(link.startswith(_MEMORY_FILE) for link in descriptors)


def _stat(pid: int) -> list[str]:
    """Fields of ``/proc/<pid>/stat`` from the state on; none if there is no such process, or no ``/proc``."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _ending_of_child(pid: int) -> str:
    """How a child of this process ended, without taking the news from whoever waits for it. "" if it can't be known."""
    try:
        result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (OSError, AttributeError):
        return ""
    if result is None:
        return ""
    if result.si_code == os.CLD_EXITED:
        return f"it exited with status {result.si_status}"
    return _signalled(result.si_status)


def _signalled(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "a signal without a name"
    hint = ", as the system does when memory runs out" if name == "SIGKILL" else ""
    return f"it was killed by signal {number} ({name}){hint}"


# ---------------------------------------------------------------- stacks without the GIL


class Dump:
    """Lets others of this host make this process write its stack, even while it holds the GIL and runs no Python.

    A signal that nothing uses is given to :mod:`faulthandler`, which writes into a file in memory; others read it
    through ``/proc``. Where that can't be had, ``signal`` is 0.
    """

    def __init__(self) -> None:
        self.signal, self.file = 0, -1
        if not sys.platform.startswith("linux"):
            return
        used = _signals_in_use()
        for number in range(signal.SIGRTMAX - 5, signal.SIGRTMIN + 1, -1):
            if not used >> (number - 1) & 1:
                self.file = os.memfd_create("lightning_patches stacks")
                faulthandler.register(number, file=self.file, all_threads=True)
                self.signal = number  # for good: without its handler it would kill, and one may be on its way
                return


def _signals_in_use() -> int:
    """The signals that have a handler, Python's or other code's, are ignored or blocked, as a mask."""
    used = 0
    with open("/proc/self/status", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name in ("SigCgt", "SigIgn", "SigBlk"):
                used |= int(value, 16)
    return used


def stack_from_outside(pid: int, started: Optional[int], number: int, file: int) -> str:
    """The stack that a :class:`Dump` in another process of this host writes; "" if it does not."""
    path = f"/proc/{pid}/fd/{file}"
    try:
        if not number or is_gone(pid, started) or not os.readlink(path).startswith(_MEMORY_FILE):
            return ""  # no handler is there any more: the signal would kill
        size = os.stat(path).st_size
        os.kill(pid, number)
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
        return "\n\n".join(t for t in threads if "/lightning_patches/hang/" not in t.replace("\\", "/"))
    except OSError:
        return ""


# ---------------------------------------------------------------- collectives


def _recorded() -> list[dict[str, Any]]:
    """What torch's flight recorder holds, oldest first."""
    module = sys.modules.get("torch._C._distributed_c10d")
    entries: list[dict[str, Any]] = []
    for name in ("_dump_nccl_trace_json", "_dump_fr_trace_json"):  # of torch 2.5 and later
        function = getattr(module, name, None)
        try:
            found = json.loads(function()) if function is not None else {}
            entries += [entry for entry in found.get("entries", []) if isinstance(entry, dict)]
        except Exception:
            continue
    return entries


def unfinished_collective() -> str:
    """The first collective on a device that has begun and not ended, as the flight recorder knows it; "" for none."""
    for entry in _recorded():
        name = str(entry.get("profiling_name", ""))
        if name.startswith("nccl:") and not entry.get("retired") and entry.get("state") != "completed":
            return name
    return ""


def last_collective() -> str:
    """The last collective that this rank began, as the flight recorder knows it; "" if it knows none."""
    entries = _recorded()
    if not entries:
        return ""
    waiting = [e for e in entries if not e.get("retired") and e.get("state") != "completed"]
    entry = waiting[0] if waiting else entries[-1]
    number = entry.get("collective_seq_id", entry.get("seq_id"))
    group = entry.get("process_group", "")
    group = group[-1] if isinstance(group, (list, tuple)) and group else group
    state = "not completed" if waiting else "completed or handed over"
    return f"{entry.get('profiling_name')} number {number} of {group}, input sizes {entry.get('input_sizes')}, {state}"


# ---------------------------------------------------------------- GPUs


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def gpus(timeout: float = 2.0) -> list[str]:
    """One line for each NVIDIA GPU of this host, by NVML; none where there is no driver.

    Args:
        timeout: seconds after which a driver that does not answer is told instead.
    """
    lines: list[str] = []
    done = threading.Event()

    def ask() -> None:
        try:
            lines.extend(_ask_nvml())
        except (OSError, AttributeError):
            pass
        done.set()

    threading.Thread(target=ask, name="lightning_patches nvml", daemon=True).start()
    if not done.wait(timeout):
        return ["the NVIDIA driver does not answer"]
    return lines


def _ask_nvml() -> Iterator[str]:
    library = ctypes.CDLL("libnvidia-ml.so.1")
    if library.nvmlInit_v2() != 0:
        return
    try:
        count = ctypes.c_uint()
        library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        for index in range(count.value):
            device = ctypes.c_void_p()
            status = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device))
            if status != 0:
                yield f"GPU {index} is lost: NVML error {status}"
                continue
            name, usage, memory = ctypes.create_string_buffer(96), _Utilization(), _Memory()
            library.nvmlDeviceGetName(device, name, ctypes.c_uint(96))
            busy = library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(usage)) == 0
            has_memory = library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
            parts = [f"GPU {index} {name.value.decode(errors='replace')}"]
            if busy:
                parts.append(f"{usage.gpu} % busy")
            if has_memory:
                parts.append(f"{memory.used / 2**30:.1f} of {memory.total / 2**30:.1f} GiB in use")
            yield ", ".join(parts)
    finally:
        library.nvmlShutdown()
