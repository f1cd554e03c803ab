"""PR 17370: under DDP each rank validates the model that it happened to be initialized with."""

from functools import cache
from typing import Any

import pytest

from tests.equivalence.proof import Proof
from tests.support.arms import Arm, run

pytestmark = pytest.mark.distributed


@cache
def observed(arm, case="validate"):
    result = run("ddp_evaluation_same_weights", arm, case)
    assert result.ok and len(result.observations) == 2, result
    first, second = result.observations
    assert all(first["own"][name] != second["own"][name] for name in first["own"]), result
    return first, second


def in_step(ranks):
    """Every rank used the weights that rank zero had made, and came to the same outputs."""
    first, second = ranks
    return first["used"] == second["used"] == first["own"] and first["outputs"] == second["outputs"]


def each_its_own(ranks):
    return all(rank["used"] == rank["own"] for rank in ranks) and ranks[0]["outputs"] != ranks[1]["outputs"]


@pytest.mark.parametrize(("version", "case"), [("2.0.0", "validate"), ("2.0.1.post0", "predict")])
def test_ranks_evaluate_one_model(version, case):
    assert each_its_own(observed(Arm("pytorch-lightning", version), case))
    shim = observed(Arm("pytorch-lightning", version, shim=True), case)
    assert in_step(shim)
    assert shim == observed(Arm("pytorch-lightning", "2.0.2"), case)


def test_what_ddp_is_to_ignore_stays():
    assert each_its_own(observed(Arm("pytorch-lightning", "2.0.0"), "ignored"))
    shim = observed(Arm("pytorch-lightning", "2.0.0", shim=True), "ignored")
    first, second = shim
    assert first["used"] == first["own"]
    assert {name: second["used"][name] for name in ("scale", "shift")} == {
        name: second["own"][name] for name in ("scale", "shift")
    }
    assert all(second["used"][name] == first["own"][name] for name in ("layer.weight", "layer.bias", "calls"))
    assert shim == observed(Arm("pytorch-lightning", "2.0.2"), "ignored")


def test_first_fixed_release_is_left_alone():
    assert observed(Arm("pytorch-lightning", "2.0.2", shim=True)) == observed(Arm("pytorch-lightning", "2.0.2"))


def _ranks_evaluate_different_models(result: Any) -> bool:
    return len(result.observations) == 2 and result.observations[0]["used"] != result.observations[1]["used"]


PROOFS = (
    Proof("ddp-evaluation-same-weights", _ranks_evaluate_different_models, case="validate"),
    Proof("ddp-evaluation-same-weights", _ranks_evaluate_different_models, case="predict"),
)
