"""Under torchrun with two processes, a Trainer and a Fabric on CPUs leave the number of devices to Lightning. Cases: ""
and ``given`` (devices=2), each also with ``-ddp``, ``-object`` (a DDPStrategy) or ``-fabric``; ``one`` (devices=1);
``one-process`` (torchrun starts one process); ``environment`` (the script chooses the environment)."""

from _expect import bug, fixed, same

EXPECT = [
    bug(["", "-fabric"], stock={"ranks": 1, "steps": 8}, patched={"ranks": 2, "steps": 4}, like="given{}"),
    same(["one", "one-process", "environment"], "programs that choose their processes are unchanged"),
    fixed(["-ddp", "-object"], "DDP strategy is accepted", stock="does not match the world size (2)", like="given{}"),
]

import os
import subprocess
import sys

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

CASE = scenario.CASE


def options():
    chosen = {"accelerator": "cpu", "devices": 2 if "given" in CASE else 1 if CASE == "one" else "auto"}
    if "ddp" in CASE:
        chosen["strategy"] = "ddp"
    if "object" in CASE:
        chosen["strategy"] = scenario.pl.strategies.DDPStrategy(find_unused_parameters=True)
    if CASE == "environment":
        chosen["plugins"] = [scenario.fabric("plugins.environments").LightningEnvironment()]
    return chosen


if __name__ == "__main__":
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        number = 1 if CASE == "one-process" else 2
        command = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={number}", sys.argv[0]]
        sys.exit(subprocess.run([sys.executable, *command]).returncode)
    if "fabric" in CASE:
        fabric = scenario.fabric().Fabric(**options())
        fabric.launch()
        loader = fabric.setup_dataloaders(DataLoader(torch.ones(8, 2)))
        scenario.observe(ranks=fabric.world_size, steps=len(loader))
    else:
        trainer = scenario.trainer(max_epochs=1, **options())
        trainer.fit(Linear(), DataLoader(torch.ones(8, 2)))
        scenario.observe(ranks=trainer.world_size, steps=trainer.global_step)
