"""Issues 20056 and 20776: Trainer and Fabric in an allocation of SLURM."""

import pytest

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.arms import Arm, run

NAME = "slurm-only-below-srun"


@pytest.mark.parametrize(
    "case, launcher",
    [
        ("srun", "SLURMEnvironment"),
        ("per-node", "LightningEnvironment"),
        ("special", "LightningEnvironment"),
        ("mpirun", "LightningEnvironment"),
        ("none", "LightningEnvironment"),
    ],
)
@pytest.mark.parametrize("version", ["2.0.9", "2.6.6"])
def test_who_starts_the_ranks(version, case, launcher):
    result = run("slurm_only_below_srun", Arm("pytorch-lightning", version, shim=True), case, toggle=NAME)
    assert result.ok and result.observations[0]["launcher"] == launcher, result
    said = result.output.count("Lightning starts its ranks by itself")
    assert said == (case in ("per-node", "special", "mpirun")), result


def test_it_is_opt_in():
    assert not run("slurm_only_below_srun", Arm("lightning", "2.6.6", shim=True), "batch").ok


PROOFS = (
    *(
        Proof(NAME, ends_with("but this variable is not supported"), case=case, recommended=f"{case}+named")
        for case in ("batch", "special", "batch+fabric")
    ),
    Proof(
        NAME,
        observes({"launcher": "SLURMEnvironment", "ranks": 1}),
        case="per-node",
        recommended="per-node+named",
        right=observes({"launcher": "LightningEnvironment", "ranks": 1}),
    ),
)
