"""A rank that loads something big in turns. Arguments: what it does inside, megabytes, at once, timeout."""

import os
import signal
import sys
import time

from lightning_patches.rank_by_rank import rank_by_rank

ACTION, SIZE, AT_ONCE, TIMEOUT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])


def load() -> None:
    copy = b"x" * (SIZE << 20)
    time.sleep(0.4)
    if ACTION == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if ACTION == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    if ACTION in ("raises", "raises_and_goes_on"):
        raise OSError("no space left on device")
    assert len(copy) == SIZE << 20


if ACTION == "loads":  # all begin together
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
