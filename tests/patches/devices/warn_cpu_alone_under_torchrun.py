"""Under torchrun with two processes, each process on a CPU works alone. Cases: "", ``given`` (devices=2), ``one``
(devices=1), ``one-process`` (torchrun starts one process)."""

from _expect import same, warns

EXPECT = [
    warns(
        "",
        "processes that work alone are warned of once",
        "Each of the 2 processes that torchrun has started works alone",
        on=("2.0.0", "2.6.6"),
    ),
    same(["given", "one", "one-process"], "no warning with a number of devices or one process"),
]

import os
import subprocess
import sys

import _scenario as scenario

CASE = scenario.CASE

if __name__ == "__main__":
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        number = 1 if CASE == "one-process" else 2
        command = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={number}", sys.argv[0]]
        sys.exit(subprocess.run([sys.executable, *command]).returncode)
    with scenario.observing_warnings():
        fabric = scenario.fabric().Fabric(accelerator="cpu", devices={"given": 2, "one": 1}.get(CASE, "auto"))
        fabric.launch()
        trainer = scenario.trainer(accelerator="cpu", devices={"given": 2, "one": 1}.get(CASE, "auto"))
    scenario.observe(ranks=[fabric.world_size, trainer.world_size])
