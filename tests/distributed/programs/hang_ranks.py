"""A rank that waits for others, or for which others wait.

Arguments: the action of this rank, and its place: before or after ``init_process_group``; ``imported`` is before it,
with torch imported. A further argument delays the action:

- ``last``: until all ranks have reached their action;
- ``watched``, in rank zero: until its hub has reported that all ranks are watched.

The ranks share their working directory. Each has a file with its output, and one that marks that it reached its action.
"""

import atexit
import contextlib
import ctypes
import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import faults

if sys.argv[1] == "hangs_in_a_late_handler":  # registered before the watch's handler, so called after it
    atexit.register(lambda: time.sleep(100))
if os.environ.get("LATE") == os.environ["RANK"]:
    time.sleep(8)
if "CLOSE_STDERR" in os.environ:
    sys.stderr = None
if "$RANK" in os.environ.get("LIGHTNING_PATCHES_HANG_SECRET", ""):
    os.environ["LIGHTNING_PATCHES_HANG_SECRET"] += os.environ["RANK"]
if "LIGHTNING_PATCHES_HANG_TIMEOUT" in os.environ:
    from lightning_patches.ranks import _processes, hang

    if "HIDE_KMSG" in os.environ:
        _processes.is_victim = lambda pid, started: False
    hang.start_from_environment()

ACTION, PLACE = sys.argv[1:3]
WORLD = int(os.environ["WORLD_SIZE"])
NESTED = """
from lightning_patches.ranks import hang
hang.start_from_environment()
from lightning_patches.ranks.hang._watch import Watch
Watch._current._thread.join(60)
assert not Watch._current._thread.is_alive(), "this process is watched as a rank"
"""


def wait_until(condition: Callable[[], Any], what: str) -> None:
    """Wait for a condition, however long it takes on a busy machine."""
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"hang_ranks.py: {what} has not happened within 120 s")
        time.sleep(0.05)


def wait_until_known() -> None:
    """Wait until this rank has sent its hello. Rank zero does not know a rank that ends earlier."""
    from lightning_patches.ranks.hang._watch import Watch

    if "LIGHTNING_PATCHES_HANG_TIMEOUT" not in os.environ:
        time.sleep(3)
        return
    wait_until(lambda: Watch._current is not None and Watch._current._hello_sent is not None, "the hello to rank zero")


def wait_until_counted(ranks: int) -> None:
    """In rank zero, wait until it has printed that so many ranks are watched."""
    from lightning_patches.ranks.hang._watch import Watch

    def is_counted() -> bool:
        hub = Watch._current._hub if Watch._current is not None else None
        return hub is not None and hub._counted == ranks

    wait_until(is_counted, f"the count of {ranks} ranks")


def is_said(*texts: str) -> bool:
    """True if a rank has printed one of these texts."""
    said = [Path(f"rank{rank}").read_text(errors="replace") for rank in range(WORLD)]
    return any(text in one for text in texts for one in said)


def is_reported() -> bool:
    return is_said("The ranks keep waiting", "This rank continues.", "The job is not ended")


def stores() -> list:
    """Return the threads that exchange the secret through torch's store."""
    return [thread.name for thread in threading.enumerate() if thread.name.endswith(" store")]


def listening() -> list:
    """Return the ports on which this process listens."""
    own = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            own.add(os.readlink(f"/proc/self/fd/{name}"))
    rows = [line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/net/{kind}").read_text().splitlines()]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]


class Slow:
    """A data set whose first item never arrives."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> int:
        time.sleep(100)
        return index


def sleeps() -> None:
    time.sleep(100)


def sleeps_a_while() -> None:
    time.sleep(4)
    wait_until(is_reported, "the report")


def works(least: float, most: float) -> None:
    began = time.monotonic()
    while (passed := time.monotonic() - began) < least or (passed < most and not is_reported()):
        for word in ("a", "bb", "ccc"):
            re.sub(word, "d" * 2000, word * 5000)
            sorted(str(number) for number in range(3000))


def runs_out_of_memory() -> None:  # inside a cgroup with little memory
    Path(os.environ["CGROUP"], "cgroup.procs").write_text(str(os.getpid()))
    hoard = [bytearray(16 << 20) for _ in range(64)]
    raise MemoryError(f"{len(hoard)} pieces are there")


def raises() -> None:
    raise ValueError("no such file: train.csv")


def stops() -> None:
    time.sleep(1)  # and has reported its position
    os.kill(os.getpid(), signal.SIGSTOP)


def holds_the_gil() -> None:
    time.sleep(1)
    ctypes.PyDLL(None).sleep(100)


def sleeps_with_the_gil() -> None:
    left = ctypes.PyDLL(None).sleep(25)
    print("slept for 25 s" if not left else f"was woken {left} s before", flush=True)


def computes_with_the_gil() -> None:
    time.sleep(1)
    sum(range(10**13))


def writes_slowly() -> None:  # one call, like a checkpoint to a slow file system
    reading, writing = os.pipe()
    drain = "import os, time\nwhile os.read(0, 4096): time.sleep(0.01)"
    with subprocess.Popen([sys.executable, "-c", drain], stdin=reading):
        os.close(reading)
        os.write(writing, b"x" * 3_000_000)
        os.close(writing)


def computes_in_c() -> None:
    began = time.monotonic()
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 300_000)
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", int(300_000 * 9 / (time.monotonic() - began)))  # about 9 s


def locks() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def polls() -> None:
    while not os.path.exists("there will be no such file"):
        time.sleep(0.2)


def has_workers() -> None:
    command = [sys.executable, "-c", "import time; time.sleep(100)"]  # not in the process group that the test kills
    children = [subprocess.Popen(command, start_new_session=True) for _ in range(2)]
    print("children", *[child.pid for child in children], flush=True)
    time.sleep(100)


def waits_for_a_stopped_child() -> None:
    with subprocess.Popen(["sleep", "100"]) as child:
        time.sleep(0.5)
        child.send_signal(signal.SIGSTOP)


def tells_threads() -> None:
    if os.environ["RANK"] == "0":
        wait_until_counted(WORLD)
    wait_until(lambda: not stores(), "the end of threads that ask the store")
    time.sleep(3)
    print("threads that ask the store:", stores())


def nests() -> None:
    subprocess.run([sys.executable, "-c", NESTED], check=True)
    wait_until_counted(WORLD)


CHILD = "import time\nend = time.time() + 9\nwhile time.time() < end: pass"
SHORT: dict[str, Callable[[], Any]] = {
    "arrives": lambda: None,
    "hangs_in_a_late_handler": lambda: None,
    "is_known": lambda: None,
    "works_a_while": lambda: works(5, 60),
    "works_on": lambda: works(100, 100),
    "dies": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "computes_a_while_with_the_gil": lambda: sum(range(3 * 10**8)),
    "waits_for_a_child": lambda: subprocess.run([sys.executable, "-c", CHILD]),
    "waits_for_a_worker": lambda: next(iter(torch.utils.data.DataLoader(Slow(), num_workers=1))),
    "does_not_end": lambda: threading.Thread(target=time.sleep, args=(100,)).start(),
    "tells_ports": lambda: print("ports that the watch has opened:", listening(), flush=True),
}
KNOWN = ("dies", "runs_out_of_memory", "raises", "stops", "holds_the_gil", "is_known", "tells_ports", "tells_threads")


def act() -> None:
    if "watched" in sys.argv[3:]:
        wait_until_counted(WORLD)
    Path(f"come{os.environ['RANK']}").touch()
    if "last" in sys.argv[3:]:
        wait_until(lambda: all(Path(f"come{rank}").exists() for rank in range(WORLD)), "the coming of all ranks")
    if "TELL_TIME" in os.environ:
        print(f"@{time.time():.2f}", flush=True)
    if ACTION in (*KNOWN, "nests"):  # before its child identifies itself as this rank
        wait_until_known()
    {**vars(faults), **globals(), **SHORT}[ACTION]()


if PLACE == "before":
    act()
import torch

if PLACE == "imported":
    act()
if PLACE == "file":
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.distributed.init_process_group("gloo", f"file://{os.getcwd()}/store", rank=rank, world_size=size)
    if rank == 0:
        wait_until_counted(1)
else:
    timeout = {"timeout": timedelta(seconds=float(os.environ["PG_TIMEOUT"]))} if "PG_TIMEOUT" in os.environ else {}
    torch.distributed.init_process_group("gloo", **timeout)
torch.distributed.all_reduce(torch.ones(3))
WAIT = os.environ.get("WAIT", "barrier")
if PLACE == "leaves":
    sys.exit()
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
if WAIT == "subgroup":
    halves = [list(range(world // 2)), list(range(world // 2, world))]
    groups = [torch.distributed.new_group(half) for half in halves]
    for _ in range(3 if rank in halves[0] else 5):
        torch.distributed.all_reduce(torch.ones(2), group=groups[rank in halves[1]])
elif WAIT == "monitored":  # Lightning 2.3 and later around prepare_data
    wait = torch.distributed.new_group(backend="gloo").monitored_barrier
elif WAIT == "functional":
    from torch.distributed import _functional_collectives
if PLACE == "after":
    act()
if WAIT == "handle":
    handle = torch.distributed.all_reduce(torch.ones(3), async_op=True)
    handle.wait()
elif WAIT == "functional":
    print(_functional_collectives.all_reduce(torch.ones(3), "sum", torch.distributed.group.WORLD).sum())
elif WAIT == "store":
    store = torch.distributed.distributed_c10d._get_default_store()
    store.set(f"key {rank}", "1")
    for other in range(world):
        store.get(f"key {other}")
elif WAIT == "monitored":
    wait()
elif WAIT == "lines":
    if rank == 0:
        torch.distributed.all_reduce(torch.ones(2))
    if rank > 0:
        torch.distributed.all_reduce(torch.ones(2))
elif WAIT == "mismatch" and rank == 0:
    torch.distributed.all_reduce(torch.ones(3))
torch.distributed.barrier()
if PLACE == "end":
    act()
torch.distributed.destroy_process_group()
print("done", flush=True)
