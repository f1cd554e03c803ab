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

OUT = Path.cwd()
TRAINING = "SCENARIO_TRAINING"


def train():
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    pl = scenario.pytorch()
    exceptions = scenario.pytorch("utilities.exceptions")
    is_main = os.environ.get("LOCAL_RANK", "0") == "0"

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def training_step(self, batch, batch_idx):
            time.sleep(0.01)
            if batch_idx == 3 and is_main:
                if scenario.CASE == "message":
                    raise exceptions.SIGTERMException("the node goes down")
                os.kill(os.getpid(), signal.SIGTERM)
            return self.layer(batch[0]).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    class CleanUp(pl.Callback):
        def on_exception(self, trainer, model, exception):
            if is_main:
                time.sleep(12 if scenario.CASE == "ranks" else 0)
                (OUT / "cleaned").touch()

    options = {"devices": 1}
    if scenario.CASE == "ranks":
        options = {"devices": 2, "strategy": scenario.pl.strategies.DDPStrategy(process_group_backend="gloo")}
    trainer = scenario.trainer(max_epochs=1, callbacks=[CleanUp()], **options)
    loader = DataLoader(TensorDataset(torch.ones(1200, 2)))
    try:
        trainer.fit(Model(), loader)
    except exceptions.SIGTERMException:
        if scenario.CASE == "caught":
            sys.exit(143)
        raise


if __name__ == "__main__":
    if TRAINING in os.environ:
        train()
    else:
        status = subprocess.run([sys.executable, __file__], env={**os.environ, TRAINING: "1"}, check=False).returncode
        scenario.observe(status=status, cleaned_up=(OUT / "cleaned").exists())
