"""A hang on two nodes that a real ``srun`` has started, which sets no address for the ranks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.distributed.processes import PROGRAMS
from tests.support import slurm
from tests.support.nodes import two_nodes
from tests.support.run import execute
from tests.support.variants import Variant, environment_of

pytestmark = [pytest.mark.distributed, pytest.mark.xdist_group("slurm"), slurm.needed]
SRUN = ("srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--overcommit", "--job-name=train", "--unbuffered")


@pytest.mark.parametrize("what", ["works", "sleeps"])
def test_only_a_trainer_that_hangs_is_ended_on_two_slurm_nodes(what: str, tmp_path: Path) -> None:
    with two_nodes() as nodes, slurm.cluster(nodes) as cluster:
        timeout = "20:abort" if what == "sleeps" else "4:abort"
        variables = {
            **environment_of(Variant("lightning", "2.6.6")),
            **cluster,
            "LIGHTNING_PATCHES_HANG_TIMEOUT": timeout,
        }
        assert not {"MASTER_ADDR", "MASTER_PORT", "LIGHTNING_PATCHES_HANG_SECRET"} & set(variables)
        command = nodes[0].command(*SRUN, sys.executable, str(PROGRAMS / "hang_trainer.py"), what, "ddp", "cpu", "2")
        status, output = execute(command, {**variables, "OMP_NUM_THREADS": "1"}, timeout=200, cwd=str(tmp_path))
        assert "2 of 2 ranks are watched for hangs." in output, output
        assert "never began" not in output and "is gone" not in output, output
        if what == "works":
            assert status == 0 and "trained" in output, output
            return
        assert status not in (0, None), output
        assert re.search(r"rank 1 has not moved for \d+ s, at hang_trainer.py:\d+ in training_step; rank 0 in", output)
        assert f"arrived: rank 0 (host {nodes[0].namespace}, pid" in output, output
        assert f"missing: rank 1 (host {nodes[1].namespace}, pid" in output and "time.sleep(100)" in output, output
