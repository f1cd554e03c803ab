"""SLURM is taken for the launcher only where srun has started this process."""

from __future__ import annotations

import os
from typing import Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream

_FIRST_SPECIAL_STEP = 0xFFFFFFF0
"""SLURM numbers the steps that it makes by itself (batch script, interactive shell, extern) from the top of 32 bits."""
_OTHER_LAUNCHERS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
"""What mpirun tells those that it starts. It starts itself with srun, whose variables they inherit."""


def _is_srun_used(original: Callable[[], bool], namespace: str) -> Callable[[], bool]:
    def _is_srun_used() -> bool:
        if not original():
            return False
        reason = _not_below_srun()
        if reason:
            notices.notice_once("slurm-only-below-srun", f"{reason}: Lightning starts its ranks by itself")
        return not reason

    return _is_srun_used


def _not_below_srun() -> str:
    """Why srun has not started this process; "" if it has."""
    step, task = os.environ.get("SLURM_STEP_ID", ""), os.environ.get("SLURM_PROCID", "")
    if not step.isdigit() or not task.isdigit():
        return "this process is in an allocation of SLURM, and srun has not started it"
    if int(step) >= _FIRST_SPECIAL_STEP:
        return "this process is in a batch script or an interactive shell of SLURM, and srun has not started it"
    if any(os.environ.get(name, task) != task for name in _OTHER_LAUNCHERS):
        return "another launcher than srun has started this process"
    return ""


PATCH = Patch(
    name="slurm-only-below-srun",
    added="0.2.0",
    title="SLURM is the launcher only of processes that srun has started",
    group="hang",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("fabric.plugins.environments.slurm:_is_srun_used", _is_srun_used),),
    upstream=Upstream(issues=(20056, 20776, 15709, 6389), pull_requests=(18618,)),
    impact=Impact(
        "In an allocation of SLURM (salloc, a notebook, a batch script whose tasks are for something else) Trainer and "
        "Fabric raise an error about --ntasks, or wait for ranks that nobody starts.",
        (
            "this variable is not supported. HINT: Use `--ntasks-per-node",
            "waits for other ranks in a SLURM allocation without srun",
        ),
        error="RuntimeError: You set `--ntasks=...` in your SLURM bash script, but this variable is not "
        "supported. HINT: Use `--ntasks-per-node=...` instead.",
    ),
    default=False,
    for_whom="whoever trains in salloc, in a notebook or in a batch script of SLURM without srun",
    signs=("SLURM_JOB_ID -SLURM_STEP_ID",),
    equivalent_to="a job that is named interactive, which Lightning does not take for one of srun's",
    note="Opt-in, as a batch script "
    "that forgets srun then trains with the devices of one node, and a requeued job without srun is not resumed. A "
    "process that a task of srun starts in turn has that task's variables, and counts as started by srun.",
)
