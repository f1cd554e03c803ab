"""A real ``srun`` in a one-node SLURM cluster that the test starts on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.activation.conftest import TRAIN, Environment, World, check
from tests.support import slurm

SRUN = ("srun", "--ntasks=2", "--ntasks-per-node=2", "--overcommit", "--job-name=train", "--unbuffered")
pytestmark = [
    pytest.mark.distributed,
    pytest.mark.xdist_group("slurm"),  # one cluster
    slurm.needed,
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    """The variables with which commands of SLURM find the cluster."""
    with slurm.cluster() as variables:
        yield variables


def test_ranks_of_srun_are_patched(world: World, cluster: dict[str, str]) -> None:
    reports = world.launch(*SRUN, world.environment.python, TRAIN, "ddp", **cluster)
    check(reports, {"ddp-0", "ddp-1"})
    assert reports["ddp-0"]["parent"] == reports["ddp-1"]["parent"]  # slurmstepd


def test_ranks_of_srun_are_patched_when_each_starts_with_run(environment, cluster, tmp_path):
    world = World("none", environment, tmp_path)
    reports = world.launch(*SRUN, environment.command("lightning-patches"), "run", TRAIN, "ddp", **cluster)
    check(reports, {"ddp-0", "ddp-1"})


def test_run_returns_the_exit_status_of_srun(environment: Environment, cluster: dict[str, str]) -> None:
    command = (environment.command("lightning-patches"), "run", "--", "srun", "--ntasks=1", environment.python)
    assert environment.run(*command, "-c", "raise SystemExit(7)", **cluster)[0] == 7
