"""Lightning treats SLURM as the launcher only if srun started the process."""

import os
from typing import Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream

_FIRST_SPECIAL_STEP = 0xFFFFFFF0
"""Special steps of SLURM (batch script, interactive shell, extern) have this number or a higher one."""
_OTHER_LAUNCHERS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
"""Variables of processes that mpirun started.

Since mpirun itself uses srun, these processes also inherit srun's variables.
"""


def _is_srun_used(original: Callable[[], bool], namespace: str) -> Callable[[], bool]:
    def _is_srun_used() -> bool:
        by_name = original()  # False for jobs named "bash" or "interactive"
        if "SLURM_NTASKS" not in os.environ:
            return by_name
        reason = _not_below_srun()
        if reason:
            if by_name:
                notices.notice_once("slurm-only-below-srun", f"{reason}: Lightning starts the ranks itself")
            return False
        if not by_name and int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
            what = f"srun has started this process as one of {os.environ['SLURM_STEP_NUM_TASKS']}"
            notices.notice_once("slurm-only-below-srun", f"{what}: SLURM is the launcher, whatever the name of the job")
            return True
        return by_name

    return _is_srun_used


def _not_below_srun() -> str:
    """Return the reason why srun did not start this process, or "" if it did."""
    step, task = os.environ.get("SLURM_STEP_ID", ""), os.environ.get("SLURM_PROCID", "")
    if not step.isdigit() or not task.isdigit():
        return "this process is in an allocation of SLURM, and srun has not started it"
    if int(step) >= _FIRST_SPECIAL_STEP:
        return "this process is in a batch script or an interactive shell of SLURM, and srun has not started it"
    if any(os.environ.get(name, task) != task for name in _OTHER_LAUNCHERS):
        return "another launcher than srun has started this process"
    if _in_shell(os.environ.get("SLURM_TASK_PID", "")):
        return "this process was started in an interactive shell, which srun has started"
    return ""


def _in_shell(task: str) -> bool:
    """True if srun's task is an interactive shell (``srun --pty bash``).

    Such a shell puts each command into a new process group. Processes that a script starts stay in the process group of
    srun's tasks.
    """
    try:
        with open(f"/proc/{int(task)}/stat") as file:
            terminal = file.read().rpartition(")")[2].split()[4]
        return terminal != "0" and os.getpgid(int(task)) != os.getpgrp()
    except (OSError, ValueError):  # not a number, not on this machine, or hidden by a container
        return False


PATCH = Patch(
    added="0.2.0",
    group="hang",
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target("fabric.plugins.environments.slurm:_is_srun_used", _is_srun_used),
        Target("lite.plugins.environments.slurm:_is_srun_used", _is_srun_used),
    ),
    upstream=Upstream(issues=(20056, 20776, 15709, 6389), pull_requests=(18618,)),
    impact=Impact(
        "In a SLURM allocation without srun (salloc, a notebook, or a batch script whose tasks are for another "
        "program), Trainer and Fabric raise an error about --ntasks, or wait for ranks that do not exist. With "
        "srun inside salloc, each task trains separately.",
        (
            "this variable is not supported. HINT: Use `--ntasks-per-node",
            "waits for other ranks in a SLURM allocation without srun",
            "The `srun` command is available on your system but is not used",
            "SLURMEnvironment.detect, _validate_srun_used and _validate_srun_variables are replaced by hand",
        ),
        error="RuntimeError: You set `--ntasks=...` in your SLURM bash script, but this variable is not "
        "supported. HINT: Use `--ntasks-per-node=...` instead.",
    ),
    opt_in="users who train in salloc, in srun --pty bash, in a notebook, or in a SLURM batch script without srun",
    signs=("SLURM_JOB_ID -SLURM_STEP_ID",),
    note="Opt-in because of three changes: a batch script without srun trains with the devices of one node, a "
    "requeued job without srun is not resumed, and srun tasks in salloc that trained separately become "
    "ranks. Processes that an srun task starts count as started by srun, except a shell at a terminal. "
    "Without the patch, set the job's name to interactive if you don't use srun, and to another name if "
    "you do.",
)
