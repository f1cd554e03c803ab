"""A rank that loads something big in turns. Arguments: what it does inside, megabytes, at once, timeout."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from lightning_patches.ranks.rank_by_rank import rank_by_rank

ACTION, SIZE, AT_ONCE, TIMEOUT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])


CHILD = """
from lightning_patches.ranks.rank_by_rank import rank_by_rank
with rank_by_rank(timeout=1.0):
    print("inside of a child", flush=True)
"""


def enter() -> None:
    with rank_by_rank(AT_ONCE, 1.0, name="of a thread"):
        print("inside of a thread", flush=True)


def load() -> None:
    copy = b"x" * (SIZE << 20)
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
if ACTION in ("loads", "makes_tmpdir_and_loads"):  # all begin together
    with open("ready", "a") as file:
        file.write("x")
    while os.path.getsize("ready") < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.01)
if ACTION == "late_loads":
    time.sleep(0.8)
if ACTION == "waits_and_loads":  # until others have left
    time.sleep(4)
try:
    began = time.monotonic()
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
