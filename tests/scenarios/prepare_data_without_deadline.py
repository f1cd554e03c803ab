"""PR 19448: work of rank zero that takes longer than the timeout of the process group, on two CPU ranks.

The program starts its two ranks as torchrun does. They wait for each other before the timeout can count.

Cases: ``module`` and ``datamodule`` (``prepare_data``), ``fabric`` (``rank_zero_first``), ``quick`` (no such work).
"""

import os
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset

TIMEOUT, WORK = 6, 14
OUT = Path(os.environ.get("SCENARIO_OUT", "."))


def with_trainer():
    pl = scenario.pytorch()
    work_done = []

    def work():
        time.sleep(WORK)
        work_done.append(scenario.rank())

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def training_step(self, batch, batch_idx):
            return self.layer(batch[0]).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    class Working(Model):
        def prepare_data(self):
            work()

    class Data(pl.LightningDataModule):
        def prepare_data(self):
            work()

        def train_dataloader(self):
            return loader

    loader = DataLoader(TensorDataset(torch.ones(8, 2)))
    strategy = scenario.pytorch("strategies").DDPStrategy(timeout=timedelta(seconds=TIMEOUT))
    trainer = scenario.trainer(accelerator="cpu", devices=2, strategy=strategy, max_epochs=1)
    if scenario.CASE == "datamodule":
        trainer.fit(Model(), datamodule=Data())
    else:
        trainer.fit(Working() if scenario.CASE == "module" else Model(), loader)
    scenario.observe(worked=work_done, steps=trainer.global_step)


def with_fabric():
    strategy = scenario.fabric("strategies").DDPStrategy(timeout=timedelta(seconds=TIMEOUT))
    fabric = scenario.fabric().Fabric(accelerator="cpu", devices=2, strategy=strategy)
    fabric.launch()
    fabric.barrier()
    began = time.time()
    with fabric.rank_zero_first():
        at_once = time.time() - began < WORK / 2
        if fabric.global_rank == 0:
            time.sleep(WORK)
    scenario.observe(first=at_once, steps=int(fabric.all_reduce(torch.ones(()), reduce_op="sum")))


def wait_for_all_ranks():
    (OUT / f"imported-{os.environ['RANK']}").touch()
    while len(list(OUT.glob("imported-*"))) < 2:
        time.sleep(0.1)


def start_ranks():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    ranks = []
    for rank in ("0", "1"):
        own = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "scenario"}
        ranks.append(subprocess.Popen([sys.executable, __file__], env={**os.environ, **common, **own}))
    return max(abs(process.wait()) for process in ranks)


if __name__ == "__main__":
    if "RANK" not in os.environ:
        sys.exit(start_ranks())
    scenario.pytorch()  # takes long, and not equally long in both
    wait_for_all_ranks()
    with_fabric() if scenario.CASE == "fabric" else with_trainer()
