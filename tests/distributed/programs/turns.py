"""A rank that loads something large in turns. Arguments: its action inside, megabytes, at once, timeout.

All ranks start together. They share their working directory, where files mark that a rank has arrived, and that it is
inside. ``OTHER_SYSTEM`` names a system to simulate.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.support import other_systems

other_systems.become(os.environ.get("OTHER_SYSTEM", ""))

from lightning_patches.ranks import _processes
from lightning_patches.ranks.rank_by_rank import rank_by_rank

ACTION, SIZE, AT_ONCE, TIMEOUT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
RANK, WORLD = os.environ["RANK"], int(os.environ["WORLD_SIZE"])


CHILD = """
from lightning_patches.ranks.rank_by_rank import rank_by_rank
with rank_by_rank(timeout=1.0):
    print("inside of a child", flush=True)
"""


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"turns.py: {what} has not happened within 120 s")
        time.sleep(0.01)


def tell(what: str) -> None:
    """Create a file with this process's pid."""
    new = Path(f"new-{what}{RANK}")
    new.write_text(str(os.getpid()))
    new.replace(f"{what}{RANK}")


def how_many(what: str) -> int:
    return len(list(Path().glob(f"{what}[0-9]")))


def has_ended(rank: int) -> bool:
    return _processes.is_gone(int(Path(f"here{rank}").read_text()), None)


def enter() -> None:
    with rank_by_rank(AT_ONCE, 1.0, name="of a thread"):
        print("inside of a thread", flush=True)


def load() -> None:
    copy = b"x" * (SIZE << 20)
    tell("inside")
    if ACTION == "loads":
        wait_until(lambda: how_many("inside") >= AT_ONCE, "that as many are inside as may be")
    time.sleep(0.4)
    if ACTION == "has_a_thread":
        threads = [threading.Thread(target=enter) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if ACTION == "has_a_child":
        subprocess.run([sys.executable, "-c", CHILD], check=True)
    if ACTION == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if ACTION == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    if ACTION in ("raises", "raises_and_goes_on"):
        raise OSError("no space left on device")
    assert len(copy) == SIZE << 20


if ACTION == "makes_tmpdir_and_loads":
    os.environ["TMPDIR"] = tempfile.mkdtemp(dir=".")
tell("here")
wait_until(lambda: how_many("here") == WORLD, "the coming of all ranks")
if ACTION == "late_loads":
    wait_until(lambda: os.path.exists("inside0"), "the turn of rank 0")
    time.sleep(0.8)
if ACTION == "loads_when_rank_0_has_ended":
    wait_until(lambda: has_ended(0), "the end of rank 0")
if ACTION == "loads_last":
    wait_until(lambda: all(has_ended(rank) for rank in range(WORLD) if rank != int(RANK)), "the end of the others")
try:
    with rank_by_rank(AT_ONCE, TIMEOUT):
        print("inside from", time.monotonic(), flush=True)
        with rank_by_rank(AT_ONCE, TIMEOUT):
            load()
        print("inside until", time.monotonic(), flush=True)
except OSError:
    if ACTION != "raises_and_goes_on":
        raise
    time.sleep(2)
print("done", flush=True)
