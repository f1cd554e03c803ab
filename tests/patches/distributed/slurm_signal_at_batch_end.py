"""SLURM's requeue signal arrives within an optimizer step. Cases: ``step``; ``by-hand`` (the signal arrives at the end
of the batch); ``validation`` (in validation); ``none`` (no signal); ``ranks`` (two ranks get the signal in different
batches)."""

from _expect import bug, patched, same


def saves(step, *weights):
    return {"step": step, "weights": list(weights)}


EXPECT = [
    bug("step", stock=saves(2, 3, 2), patched=saves(3, 3, 3), like="by-hand"),
    same(["validation", "none", "by-hand"], "signal outside of a step is handled as on stock"),
    patched("ranks", "ranks save after the same whole batch", [{"step": 3, "weights": [3, 3], "ended_at": 6}] * 2),
]

import os
import signal
import socket
import stat
import subprocess
import sys

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

CASE = scenario.CASE
OUT = os.getcwd()
RANK = int(os.environ.get("SLURM_PROCID", "0"))
RANKS = 2 if CASE == "ranks" else 1


def start_slurm():
    """Set the variables of a job, and a `scontrol` that does nothing; start the other rank."""
    command = os.path.join(OUT, "scontrol")
    with open(command, "w") as file:
        file.write("#!/bin/sh\nexit 0\n")
    os.chmod(command, os.stat(command).st_mode | stat.S_IEXEC)
    os.environ["PATH"] = os.path.abspath(OUT) + os.pathsep + os.environ["PATH"]
    names = {"JOB_ID": 7, "JOB_NAME": "train", "NTASKS": RANKS, "NTASKS_PER_NODE": RANKS, "NNODES": 1, "NODEID": 0}
    os.environ.update({f"SLURM_{name}": str(value) for name, value in names.items()})
    os.environ.update({"SLURM_JOB_NODELIST": "localhost", "MASTER_ADDR": "127.0.0.1"})
    if RANK == 0:
        with socket.create_server(("127.0.0.1", 0)) as free:
            os.environ["MASTER_PORT"] = str(free.getsockname()[1])
        os.environ.update({"SLURM_PROCID": "0", "SLURM_LOCALID": "0"})
        if RANKS == 2:
            other = {**os.environ, "SLURM_PROCID": "1", "SLURM_LOCALID": "1"}
            return subprocess.Popen([sys.executable, __file__], env=other)
    return None


class Counting(torch.optim.SGD):
    """Fills the parameters with the number of the step. The signal arrives between two parameters."""

    def step(self, closure=None):
        loss = closure()
        self.count = getattr(self, "count", 0) + 1
        for place, parameter in enumerate(p for group in self.param_groups for p in group["params"]):
            parameter.data.fill_(float(self.count))
            if CASE in ("step", "ranks") and self.count == 3 + RANK and place == 0:
                os.kill(os.getpid(), signal.SIGUSR1)
        return loss


class Model(scenario.BoringModel):
    def configure_optimizers(self):
        return Counting(self.parameters(), lr=0.1)

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if CASE == "by-hand" and batch_idx == 2:
            os.kill(os.getpid(), signal.SIGUSR1)

    def on_validation_start(self):
        if CASE == "validation":
            os.kill(os.getpid(), signal.SIGUSR1)


if __name__ == "__main__":
    other = start_slurm()
    plugin = scenario.pytorch("plugins.environments").SLURMEnvironment(auto_requeue=True)
    options = {"devices": 2, "strategy": "ddp"} if RANKS == 2 else {"devices": 1}
    trainer = scenario.trainer(
        accelerator="cpu", max_epochs=1, limit_val_batches=1, num_sanity_val_steps=0, plugins=[plugin], **options
    )
    trainer.fit(Model(), DataLoader(torch.ones(6 * RANKS, 32)), DataLoader(torch.ones(1, 32)))
    path = os.path.join(OUT, "hpc_ckpt_1.ckpt")
    saved = torch.load(path, weights_only=False) if os.path.exists(path) else {}
    weights = [int(value.flatten()[0]) for value in saved.get("state_dict", {}).values()]
    scenario.observe(step=saved.get("global_step"), weights=weights, ended_at=trainer.global_step)
    if other is not None:
        assert other.wait(60) == 0
