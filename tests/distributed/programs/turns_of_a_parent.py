"""Rank 0 starts rank 1 right before its turn, and a program at the start of its turn; three times.

Rank 0 stays inside until the program has been inside, and for one more second.
"""

import os
import subprocess
import sys
import time

from lightning_patches.ranks.rank_by_rank import rank_by_rank

CHILD = """
import sys
from lightning_patches.ranks.rank_by_rank import rank_by_rank
with rank_by_rank(timeout=20.0, name=sys.argv[2]):
    print(sys.argv[1], flush=True)
"""


def start(what: str, turn: int, rank: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "RANK": rank, "LOCAL_RANK": rank}
    return subprocess.Popen([sys.executable, "-c", CHILD, what, str(turn)], env=environment)


with rank_by_rank():  # everything is imported now, so the next turns start at once
    pass
for turn in range(3):
    before = start("rank 1", turn, "1")
    with rank_by_rank(timeout=20.0, name=str(turn)):
        within = start("child", turn, "0")
        within.wait()
        time.sleep(1)
        print("rank 0 leaves", flush=True)
    before.wait()
