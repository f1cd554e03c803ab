"""A rank that waits for others, or is waited for. Arguments: what this rank does, and where: before or after
``init_process_group``."""

import os
import re
import signal
import subprocess
import sys
import time

if "LIGHTNING_PATCHES_HANG_TIMEOUT" in os.environ:
    from lightning_patches import hang

    hang.start_from_environment()

ACTION, PLACE = sys.argv[1:3]
NESTED = "import time; from lightning_patches import hang; hang.start_from_environment(); time.sleep(1.5)"


def wait_until_known() -> None:
    """Until this rank has said hello to rank zero: one that ends before, on a busy machine, nobody knows of."""
    from lightning_patches.hang._watch import Watch

    while Watch._current is None or Watch._current._connection is None:
        time.sleep(0.05)


def act() -> None:
    if ACTION == "sleeps":
        time.sleep(100)
    elif ACTION == "sleeps_a_while":
        time.sleep(4)
    elif ACTION == "works_a_while":
        end = time.monotonic() + 5
        while time.monotonic() < end:
            for word in ("a", "bb", "ccc"):
                re.sub(word, "d" * 2000, word * 5000)
                sorted(str(number) for number in range(3000))
    elif ACTION == "dies":
        wait_until_known()
        os.kill(os.getpid(), signal.SIGKILL)
    elif ACTION == "raises":
        wait_until_known()
        raise ValueError("no such file: train.csv")
    elif ACTION == "stops":
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGSTOP)
    elif ACTION == "holds_the_gil":
        time.sleep(1)
        sum(range(10**13))
    elif ACTION == "nests":
        subprocess.run([sys.executable, "-c", NESTED], check=True)


if PLACE == "before":
    act()
import torch

torch.distributed.init_process_group("gloo")
torch.distributed.all_reduce(torch.ones(3))
if PLACE == "after":
    act()
torch.distributed.barrier()
torch.distributed.destroy_process_group()
print("done", flush=True)
