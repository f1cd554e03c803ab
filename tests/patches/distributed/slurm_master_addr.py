"""The address of rank zero under SLURM. Case ``unset``: the job does not set MASTER_ADDR."""

from _expect import bug, same

FIRST_NODE = {"address": "node3", "variable": "node3"}

EXPECT = [
    bug(stock={"address": "node3", "variable": "node3"}, patched={"address": "node3-ib", "variable": "node3-ib"}),
    same("unset", "first node is used without the variable", FIRST_NODE, alone=True, on="2.0.9"),
]

import os

import _scenario as scenario

if __name__ == "__main__":
    variables = {"JOB_ID": "41", "JOB_NAME": "train", "PROCID": "0", "LOCALID": "0", "NODEID": "0", "NTASKS": "1"}
    os.environ.update({f"SLURM_{name}": value for name, value in variables.items()}, SLURM_NODELIST="node[3-4]")
    os.environ.pop("MASTER_ADDR", None)
    if scenario.CASE != "unset":
        os.environ["MASTER_ADDR"] = "node3-ib"
    environment = scenario.trainer(devices=1)._accelerator_connector.cluster_environment
    scenario.observe(address=environment.main_address, variable=os.environ["MASTER_ADDR"])
