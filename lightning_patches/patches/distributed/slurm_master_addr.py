"""A MASTER_ADDR that the job sets is used under SLURM."""

from __future__ import annotations

import os
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title


def _main_address(original: Callable[[Any], str], namespace: str) -> Callable[[Any], str]:
    def main_address(self: Any) -> str:
        return os.environ.get("MASTER_ADDR") or original(self)

    return main_address


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.2.0",
    group="hang",
    affected=(">=2.0.0,<2.1.0",),
    targets=(Target("fabric.plugins.environments.slurm:SLURMEnvironment.main_address", _main_address),),
    upstream=Upstream(issues=(17550,), pull_requests=(17596,), fixed_in="2.1.0"),
    impact=Impact(
        "Under SLURM the ranks meet at the first node of the whole job, whatever MASTER_ADDR says: where its name is "
        "not that of the fast network, or where the step does not run there, they wait for each other.",
        ("MASTER_ADDR is ignored under SLURM", "resolve_root_node_address is replaced by hand"),
    ),
    opt_in="users who set MASTER_ADDR in a job script of SLURM",
    signs=("SLURM_JOB_ID MASTER_ADDR",),
    note="Opt-in, as a MASTER_ADDR that an earlier shell has left behind would be used as well.",
)
