"""PR 21623: the exit status of a training that SIGTERM ended.

The program starts a training as a new process and observes its exit status.

Cases: ``single`` (one process), ``caught`` (the recommended usage: the script turns the exception into a status),
``message`` (the script raises the exception with a custom message), ``ranks`` (two ranks that Lightning starts; the
first needs more time for its cleanup than the launcher waits for the others).
"""

from _expect import bug, fixed, same

EXPECT = [
    bug("single", stock={"status": 0, "cleaned_up": True}, patched={"status": 143, "cleaned_up": True}, like="caught"),
    fixed(
        "ranks",
        "rank with status 143 does not kill the others",
        stock={"status": 0, "cleaned_up": True},
        patched={"status": 143, "cleaned_up": True},
        alone=True,
        on="2.5.1",
    ),
    same("message", "message of the script is kept", {"status": 1, "cleaned_up": True}, alone=True),
]

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset

OUT = Path.cwd()
TRAINING = "SCENARIO_TRAINING"
SIGTERMException = scenario.pytorch("utilities.exceptions").SIGTERMException
IS_MAIN = os.environ.get("LOCAL_RANK", "0") == "0"


class Model(Linear):
    def training_step(self, batch, batch_idx):
        time.sleep(0.01)
        if batch_idx == 3 and IS_MAIN:
            if scenario.CASE == "message":
                raise SIGTERMException("the node goes down")
            os.kill(os.getpid(), signal.SIGTERM)
        return super().training_step(batch, batch_idx)


class CleanUp(scenario.pl.Callback):
    def on_exception(self, trainer, model, exception):
        if IS_MAIN:
            time.sleep(12 if scenario.CASE == "ranks" else 0)
            (OUT / "cleaned").touch()


def train():
    options = {"devices": 1}
    if scenario.CASE == "ranks":
        options = {"devices": 2, "strategy": scenario.pl.strategies.DDPStrategy(process_group_backend="gloo")}
    trainer = scenario.trainer(max_epochs=1, callbacks=[CleanUp()], **options)
    loader = DataLoader(TensorDataset(torch.ones(1200, 2)))
    try:
        trainer.fit(Model(), loader)
    except SIGTERMException:
        if scenario.CASE == "caught":
            sys.exit(143)
        raise


if __name__ == "__main__":
    if TRAINING in os.environ:
        train()
    else:
        status = subprocess.run([sys.executable, __file__], env={**os.environ, TRAINING: "1"}, check=False).returncode
        scenario.observe(status=status, cleaned_up=(OUT / "cleaned").exists())
