"""PR 19448: work of rank zero that takes longer than the timeout of the process group, on two CPU ranks.

The program forks after its imports, so that both ranks start at the same time and the timeout can be short. The work
begins when the second rank is about to wait for it. It ends when the second rank ends, or without an error with the
first rank.

Cases: ``module``, ``datamodule`` and ``both`` (``prepare_data``), ``fabric`` (``rank_zero_first``), ``quick`` (no such
work).
"""

from _expect import bug, fixed, same, whole_run

EXPECTED = {
    "module": [{"worked": ["module"], "steps": 4}, {"worked": [], "steps": 4}],
    "datamodule": [{"worked": ["datamodule"], "steps": 4}, {"worked": [], "steps": 4}],
    "both": [{"worked": ["datamodule", "module"], "steps": 4}, {"worked": [], "steps": 4}],
    "quick": [{"worked": [], "steps": 4}, {"worked": [], "steps": 4}],
    "fabric": [{"first": True, "steps": 2}, {"first": False, "steps": 2}],
}


def times_out(result):
    return not result.ok and "imed out" in result.output


EXPECT = [
    bug("both", stock=whole_run(times_out), patched=[*EXPECTED["both"]]),
    bug("fabric", stock=whole_run(times_out), patched=[*EXPECTED["fabric"]], since="2.1.0"),
    same("quick", "module without prepare data is unchanged", [*EXPECTED["quick"]], alone=True, on=("2.1.4", "2.2.5")),
    *[
        fixed(
            case,
            "ranks wait for prepare_data longer than the timeout",
            stock=reported,
            patched=EXPECTED["module"] if case == "module" else EXPECTED["datamodule"],
            alone=True,
            on=version,
        )
        for version, case, reported in (
            ("2.0.0", "datamodule", "timed out after 4000ms while trying to connect"),
            ("2.2.5", "module", "Timed out waiting 4000ms"),
        )
    ],
]

import os
import socket
import sys
import time
from datetime import timedelta

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset

TIMEOUT, WORK = 4, 14  # torch waits up to 2.7 times the timeout for the rank that opens the store
ARRIVED = os.pipe()


def with_trainer():
    pl = scenario.pytorch()
    work_done = []

    def work(owner, seconds=WORK):
        if seconds:
            os.read(ARRIVED[0], 1)
        time.sleep(seconds)
        work_done.append(owner)

    class Model(Linear):
        def training_step(self, batch, batch_idx):
            return self.layer(batch[0]).sum()

    class Working(Model):
        def prepare_data(self):
            work("module")

    class Data(pl.LightningDataModule):
        def prepare_data(self):
            work("datamodule", 0 if scenario.CASE == "both" else WORK)

        def train_dataloader(self):
            return loader

    loader = DataLoader(TensorDataset(torch.ones(8, 2)))
    model = Working() if scenario.CASE in ("module", "both") else Model()
    data = {"datamodule": Data()} if scenario.CASE in ("datamodule", "both") else {"train_dataloaders": loader}
    strategy = scenario.pl.strategies.DDPStrategy(timeout=timedelta(seconds=TIMEOUT))
    trainer = scenario.trainer(devices=2, strategy=strategy, max_epochs=1)
    if os.environ["RANK"] == "1":
        os.write(ARRIVED[1], b"1")
    trainer.fit(model, **data)
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


def be_two_ranks():
    """Fork a second rank, with torchrun's variables. Return 0 in the first rank, and its process id in the second."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, WORLD_SIZE="2", LOCAL_WORLD_SIZE="2")
    os.environ.update(GROUP_RANK="0", TORCHELASTIC_RUN_ID="scenario")
    first = os.fork()
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = "1" if first else "0"
    return first


if __name__ == "__main__":
    scenario.pytorch(), scenario.fabric()
    first = be_two_ranks()
    with_fabric() if scenario.CASE == "fabric" else with_trainer()
    if first:
        sys.exit(os.waitpid(first, 0)[1] != 0)
