"""PR 17424: in Fabric, training_step() of a LightningModule goes past DDP."""

from typing import Any

import pytest

from tests.equivalence.proof import Proof
from tests.support.arms import Arm, run

pytestmark = pytest.mark.distributed


def observed(arm):
    # fabric-submodule-sync would average these gradients as well
    result = run("fabric_step_methods", arm, toggle="fabric-step-methods" if arm.shim else None)
    assert result.ok and len(result.observations) == 2, result
    return result.observations


def in_step(ranks):
    return ranks[0]["weights"] == ranks[1]["weights"]


def test_ranks_train_one_model():
    fixed = observed(Arm("pytorch-lightning", "2.0.2"))
    assert in_step(fixed)
    for version in ("2.0.0", "2.0.1.post0"):
        assert not in_step(observed(Arm("pytorch-lightning", version)))
        assert observed(Arm("pytorch-lightning", version, shim=True)) == fixed
    assert observed(Arm("pytorch-lightning", "2.0.2", shim=True)) == fixed


def _ranks_differ(result: Any) -> bool:
    return len(result.observations) == 2 and not in_step(result.observations)


PROOFS = (Proof("fabric-step-methods", _ranks_differ),)
