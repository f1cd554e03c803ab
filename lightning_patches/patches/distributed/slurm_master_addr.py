"""Lightning uses the MASTER_ADDR that a job sets under SLURM."""

import os
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _main_address(original: Callable[[Any], str], namespace: str) -> Callable[[Any], str]:
    def main_address(self: Any) -> str:
        return os.environ.get("MASTER_ADDR") or original(self)

    return main_address


PATCH = Patch(
    added="0.2.0",
    group="hang",
    affected=(">=1.8.0,<2.1.0",),
    targets=(
        Target("fabric.plugins.environments.slurm:SLURMEnvironment.main_address", _main_address),
        Target("lite.plugins.environments.slurm:SLURMEnvironment.main_address", _main_address),
    ),
    upstream=Upstream(issues=(17550,), pull_requests=(17596,), fixed_in="2.1.0"),
    impact=Impact(
        "Under SLURM the ranks connect to the first node of the job, even if MASTER_ADDR names another host. "
        "If the first node's name does not belong to the fast network, or the step does not run there, the "
        "ranks wait forever.",
        ("MASTER_ADDR is ignored under SLURM", "resolve_root_node_address is replaced by hand"),
    ),
    opt_in="users who set MASTER_ADDR in a SLURM job script",
    signs=("SLURM_JOB_ID MASTER_ADDR",),
    note="Opt-in because a MASTER_ADDR that an earlier shell left in the environment would be used, too.",
)
