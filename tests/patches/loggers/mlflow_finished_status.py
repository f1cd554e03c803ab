"""SLURM's signal reaches a run with MLFlowLogger. In the case ``done``, the run ends by itself."""

from _expect import bug, same

EXPECT = [
    bug(
        stock="Could not get run status corresponding to string finished",
        patched={"statuses": ["FINISHED", "FINISHED"], "steps": 3, "saved": ["hpc_ckpt_1.ckpt"], "requeued": True},
    ),
    same("done", "run that ends by itself is unchanged"),
]

import os
import signal
import stat

import _mlflow as mlflow
import _scenario as scenario

OUT = os.getcwd()
STATUSES = []


def set_terminated(client, run_id, status=None, end_time=None):
    if status not in ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"):
        raise Exception(f"Could not get run status corresponding to string {status}.")
    STATUSES.append(status)


class Signalled(scenario.boring_model()):
    def training_step(self, batch, batch_idx):
        if batch_idx == 1 and scenario.CASE != "done":
            os.kill(os.getpid(), signal.SIGUSR1)
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    command = os.path.join(OUT, "scontrol")
    with open(command, "w") as file:
        file.write('#!/bin/sh\necho "$@" > "$0.called"\n')
    os.chmod(command, os.stat(command).st_mode | stat.S_IEXEC)
    os.environ["PATH"] = os.path.abspath(OUT) + os.pathsep + os.environ["PATH"]
    names = {
        "JOB_ID": 7,
        "JOB_NAME": "train",
        "NTASKS": 1,
        "NTASKS_PER_NODE": 1,
        "PROCID": 0,
        "LOCALID": 0,
        "NODEID": 0,
    }
    os.environ.update({f"SLURM_{name}": str(value) for name, value in names.items()})
    mlflow.MlflowClient.set_terminated = set_terminated
    logger = scenario.pl.loggers.MLFlowLogger(save_dir=mlflow.SITE)
    logger.log_metrics({"started": 1.0}, step=0)
    trainer = scenario.trainer(max_steps=3, limit_val_batches=0, logger=logger)
    with scenario.observing_errors():
        trainer.fit(Signalled())
    scenario.observe(
        statuses=STATUSES,
        steps=trainer.global_step,
        saved=sorted(name for name in os.listdir(OUT) if name.startswith("hpc_ckpt")),
        requeued=os.path.exists(command + ".called"),
    )
