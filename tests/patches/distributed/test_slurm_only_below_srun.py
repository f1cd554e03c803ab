import os
import shlex
import subprocess
import sys

import pytest

from tests.support import slurm
from tests.support.programs import Program
from tests.support.variants import Variant, environment_of

NAME = "slurm-only-below-srun"

PROGRAM = Program(NAME, "2.6.6", "pytorch-lightning", alone=True)

LAUNCHER = """
import lightning_patches
from lightning_fabric import Fabric
print("by", type(Fabric(accelerator="cpu", devices=1)._connector.cluster_environment).__name__, flush=True)
"""

WAYS = {
    "srun -n1 {python}": ["SLURMEnvironment"],
    "srun --ntasks-per-node=2 {python}": ["SLURMEnvironment"] * 2,
    "srun --ntasks-per-node=2 bash -c '{python}; true'": ["SLURMEnvironment"] * 2,
    "salloc --ntasks-per-node=2 srun {python}": ["SLURMEnvironment"] * 2,
    "salloc --ntasks-per-node=2 {python}": ["LightningEnvironment"],
    "srun -n1 -J train --pty bash -ic '{python}; true'": ["LightningEnvironment"],
    "sbatch --wait -n2 -o batch.txt --wrap '{python}'; cat batch.txt": ["LightningEnvironment"],
    "sbatch --wait --ntasks-per-node=2 -o batch.txt --wrap 'srun {python}'; cat batch.txt": ["SLURMEnvironment"] * 2,
}


@pytest.mark.parametrize(
    ("case", "launcher"),
    [
        ("srun", "SLURMEnvironment"),
        ("per-node", "LightningEnvironment"),
        ("special", "LightningEnvironment"),
        ("mpirun", "LightningEnvironment"),
        ("salloc", "SLURMEnvironment"),
        ("pty", "LightningEnvironment"),
        ("pty+named", "LightningEnvironment"),
        ("srun+named", "LightningEnvironment"),
        ("none", "LightningEnvironment"),
    ],
)
@pytest.mark.parametrize("version", ["2.0.9", "2.6.6"])
def test_launcher_of_the_ranks_is_detected(version, case, launcher):
    result = PROGRAM.shim(case, version)
    assert result.ok and result.observations[0]["launcher"] == launcher, result
    said = result.output.count("Lightning starts the ranks itself")
    assert said == (case in ("per-node", "special", "mpirun", "pty")), result
    assert result.output.count("SLURM is the launcher") == (case == "salloc"), result


@slurm.needed
@pytest.mark.distributed
@pytest.mark.xdist_group("slurm")
@pytest.mark.timeout(600)
def test_launcher_is_detected_in_a_real_slurm_cluster(tmp_path):
    tmp_path.joinpath("launcher.py").write_text(LAUNCHER)
    python = shlex.join([sys.executable, str(tmp_path / "launcher.py")])
    variables = environment_of(Variant("pytorch-lightning", "2.6.6", shim=True), toggle=NAME)
    with slurm.cluster() as cluster:
        for way, launchers in WAYS.items():
            terminal = ["script", "-qec", way.format(python=python), os.devnull]
            done = subprocess.run(
                terminal if "--pty" in way else ["bash", "-c", way.format(python=python)],
                env={**variables, **cluster, "SLURM_OVERCOMMIT": "1"},
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=120,
            )
            by = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("by ")]
            assert by == launchers, (way, done.stdout)
