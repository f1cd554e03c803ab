"""One of two ranks dies, and the other waits for it. The scenario starts the training in new processes, waits half a
minute after the death, and reports if they have ended. Cases: ``trainer`` and ``fabric`` (rank one raises an error
before it joins the others), ``killed`` (it is killed there), ``well`` (no rank dies), ``late`` (rank one fails when the
training is over, while rank zero still works)."""

from _expect import bug, patched, same, whole_run

DONE = {"ended": True, "well": True, "done": True}

ENDS = {"ended": True, "well": False, "done": False}

EXPECT = [
    bug(["trainer", "fabric"], stock=lambda seen: not seen["ended"]),
    same("well", "job without a dead rank is unchanged", DONE, alone=True, on="2.0.9"),
    same("late", "patch is opt in since it ends a working rank zero", DONE, toggle="default", on="2.0.9"),
    patched(
        "killed",
        "killed rank ends the job",
        whole_run(lambda result: result.observations == [ENDS] and "ended with status -9" in result.output),
        alone=True,
        on="2.0.9",
    ),
    patched("late", "rank zero that still works is ended when another rank dies", [ENDS], alone=True, on="2.0.9"),
]

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import _scenario as scenario

CASE = scenario.CASE
PATIENCE = 30
DEAD, DONE = Path("dead"), Path("done")


def train():
    if os.environ.get("LOCAL_RANK") == "1" and CASE not in ("well", "late"):
        DEAD.touch()
        if CASE == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("rank one is dead")
    if CASE == "fabric":
        fabric = scenario.fabric().Fabric(accelerator="cpu", devices=2, strategy="ddp")
        fabric.launch()
        rank = fabric.global_rank
    else:
        trainer = scenario.trainer(devices=2, strategy="ddp", max_steps=4, limit_val_batches=0)
        trainer.fit(scenario.BoringModel())
        rank = trainer.global_rank
    if CASE == "late":
        if rank == 1:
            DEAD.touch()
            os._exit(1)
        time.sleep(10)
    if rank == 0:
        DONE.touch()


def watch():
    job = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__)], env={**os.environ, "THE_JOB": "1"}, start_new_session=True
    )
    since = None
    try:
        while job.poll() is None and (since is None or time.monotonic() - since < PATIENCE):
            since = since or (time.monotonic() if DEAD.exists() else None)
            time.sleep(0.1)
        scenario.observe(ended=job.returncode is not None, well=job.returncode == 0, done=DONE.exists())
    finally:
        try:
            os.killpg(job.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        job.wait()


if __name__ == "__main__":
    train() if "THE_JOB" in os.environ else watch()
