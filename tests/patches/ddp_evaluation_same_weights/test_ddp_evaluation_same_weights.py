from functools import cache
from typing import Any, Callable

import pytest

from tests.equivalence.proof import proofs
from tests.support.variants import Result, Variant, run

pytestmark = pytest.mark.distributed


@cache
def observed(variant, case):
    result = run("ddp_evaluation_same_weights", variant, case)
    assert result.ok and len(result.observations) == 2, result
    first, second = result.observations
    assert all(first["own"][name] != second["own"][name] for name in first["own"]), result
    return first, second


def in_step(ranks):
    """True if every rank used rank zero's weights, and had the same outputs."""
    first, second = ranks
    return first["used"] == second["used"] == first["own"] and first["outputs"] == second["outputs"]


def each_its_own(ranks):
    return all(rank["used"] == rank["own"] for rank in ranks) and ranks[0]["outputs"] != ranks[1]["outputs"]


def test_parameters_that_ddp_ignores_are_unchanged():
    assert each_its_own(observed(Variant("pytorch-lightning", "2.0.0"), "ignored"))
    shim = observed(Variant("pytorch-lightning", "2.0.0", shim=True), "ignored")
    first, second = shim
    assert first["used"] == first["own"]
    assert {name: second["used"][name] for name in ("scale", "shift")} == {
        name: second["own"][name] for name in ("scale", "shift")
    }
    assert all(second["used"][name] == first["own"][name] for name in ("layer.weight", "layer.bias", "calls"))
    assert shim == observed(Variant("pytorch-lightning", "2.0.2"), "ignored")


def test_model_has_no_more_parameter_calls_than_on_stock():
    stock, shim = (observed(Variant("pytorch-lightning", "2.0.0", shim=on), "asked") for on in (False, True))
    assert in_step(shim)
    assert [rank["asked"] for rank in shim] == [rank["asked"] for rank in stock]


def _both(check: Callable[[Any], bool]) -> Callable[[Result], bool]:
    return lambda result: len(result.observations) == 2 and check(result.observations)


PROOFS = proofs("ddp-evaluation-same-weights", _both(each_its_own), "validate", "predict", right=_both(in_step))
