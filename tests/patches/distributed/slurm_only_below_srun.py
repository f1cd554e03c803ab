"""Issues 20056 and 20776: Trainer and Fabric in a SLURM allocation, with SLURM's variables.

Cases: ``batch`` (a batch script with --ntasks=4 and no srun), ``per-node`` (with --ntasks-per-node, so that it would
wait for ranks), ``special`` (the shell of salloc, which has a special step number), ``mpirun`` (which inherits the step
of its daemon), ``srun`` (one task that srun has started), ``salloc`` (one of two that srun has started in a shell of
salloc), ``pty`` (a command in the shell of ``srun --pty bash``), ``none`` (no SLURM). With ``+fabric`` behind it,
Fabric; with ``+named``, the job's name is bash; with ``+train``, it is not.
"""

from _expect import bug

EXPECT = [
    *[
        bug(case, stock="but this variable is not supported", like=f"{case}+named")
        for case in ("batch", "special", "batch+fabric")
    ],
    bug(
        "per-node",
        stock={"launcher": "SLURMEnvironment", "ranks": 1},
        patched={"launcher": "LightningEnvironment", "ranks": 1},
        like="per-node+named",
    ),
    bug(
        "salloc",
        stock={"launcher": "LightningEnvironment", "ranks": 1},
        patched={"launcher": "SLURMEnvironment", "ranks": 2},
        like="salloc+train",
    ),
    bug(
        "pty",
        stock={"launcher": "SLURMEnvironment", "ranks": 1},
        patched={"launcher": "LightningEnvironment", "ranks": 1},
        like="pty+named",
    ),
]

import os
import pty
import subprocess
import sys

import _scenario as scenario

CASE, *OPTIONS = scenario.CASE.split("+")
JOB = {"SLURM_JOB_ID": "41", "SLURM_JOB_NAME": "train", "SLURM_JOB_NODELIST": "localhost"}
TASK = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
VARIABLES = {
    "batch": {**JOB, **TASK, "SLURM_NTASKS": "4"},
    "per-node": {**JOB, **TASK, "SLURM_NTASKS": "1", "SLURM_NTASKS_PER_NODE": "1"},
    "special": {**JOB, **TASK, "SLURM_NTASKS": "4", "SLURM_STEP_ID": "4294967290"},
    "mpirun": {**JOB, **TASK, "SLURM_NTASKS": "4", "SLURM_STEP_ID": "0", "OMPI_COMM_WORLD_RANK": "3"},
    "srun": {**JOB, **TASK, "SLURM_NTASKS": "1", "SLURM_NTASKS_PER_NODE": "1", "SLURM_STEP_ID": "0"},
    "none": {},
}
VARIABLES["salloc"] = {**VARIABLES["srun"], "SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "2"}
VARIABLES["salloc"].update(SLURM_JOB_NAME="bash", SLURM_STEP_NUM_TASKS="2")
VARIABLES["pty"] = {**VARIABLES["srun"], "SLURM_STEP_NUM_TASKS": "1"}


def below_a_shell():
    """Run this program again, as a shell at a terminal starts it."""
    shell, terminal = pty.fork()
    if shell == 0:
        os.environ["SLURM_TASK_PID"] = str(os.getpid())
        command = [sys.executable, __file__]
        os._exit(subprocess.run(command, preexec_fn=os.setpgrp, stdout=subprocess.DEVNULL).returncode)
    while True:
        try:
            said = os.read(terminal, 4096)
        except OSError:  # the terminal was closed
            said = b""
        if not said:
            break
        print(said.decode(errors="replace"), end="")
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(shell, 0)[1]))


if __name__ == "__main__":
    if CASE == "pty" and "SLURM_TASK_PID" not in os.environ:
        below_a_shell()
    for name in [name for name in os.environ if name.startswith(("SLURM_", "OMPI_", "PMI"))]:
        if name != "SLURM_TASK_PID" or CASE != "pty":
            del os.environ[name]
    os.environ.update(VARIABLES[CASE])
    if "train" in OPTIONS:
        os.environ["SLURM_JOB_NAME"] = "train"
    if "named" in OPTIONS:
        os.environ["SLURM_JOB_NAME"] = "bash"
    with scenario.observing_errors():
        if "fabric" in OPTIONS:
            connector = scenario.fabric().Fabric(accelerator="cpu", devices=1)._connector
        else:
            connector = scenario.trainer(devices=1)._accelerator_connector
        launcher = connector.cluster_environment
    scenario.observe(launcher=type(launcher).__name__, ranks=launcher.world_size())
