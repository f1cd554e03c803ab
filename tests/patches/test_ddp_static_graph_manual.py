"""PR 21251: with static_graph=True and manual optimization, each rank trains a model of its own."""

from typing import Any

import pytest

from tests.equivalence.proof import Proof
from tests.support.arms import Arm, run

pytestmark = pytest.mark.distributed
FITS = ("first fit", "second fit")


def observed(arm, case="static"):
    """What the two ranks saw in each fit."""
    result = run("ddp_static_graph_manual", arm, case)
    assert result.ok and len(result.observations) == 2, result
    return {fit: [rank[fit] for rank in result.observations] for fit in FITS}


def in_step(fit):
    first, second = fit
    return first == second


@pytest.fixture(scope="module")
def without_static_graph():
    reference = observed(Arm("lightning", "2.6.6"), "plain")
    assert in_step(reference["first fit"]) and in_step(reference["second fit"])
    return reference


@pytest.mark.parametrize(
    ("distribution", "version", "broken"),
    [("pytorch-lightning", "2.0.0", FITS), ("lightning", "2.5.6", FITS), ("lightning", "2.6.6", FITS[1:])],
)
def test_ranks_train_one_model(distribution, version, broken, without_static_graph):
    stock = observed(Arm(distribution, version))
    assert tuple(fit for fit in FITS if not in_step(stock[fit])) == broken, stock
    assert observed(Arm(distribution, version, shim=True)) == without_static_graph


def test_what_torch_cannot_do_is_said():
    stock = observed(Arm("lightning", "2.5.6"), "no_sync")
    assert not in_step(stock["first fit"])
    shim = run("ddp_static_graph_manual", Arm("lightning", "2.5.6", shim=True), "no_sync")
    assert shim.ok and [rank["warnings"] for rank in shim.observations] == [
        [
            f"[rank {rank}] DDPStrategy(static_graph=True): the first backward of manual optimization was under"
            " no_sync(). torch does not support that with a static graph, and the ranks will not average their"
            " gradients. Leave out static_graph=True, or no_sync()."
        ]
        for rank in (0, 1)
    ], shim


def _ranks_differ(result: Any) -> bool:
    first = result.observations[:1]
    return any(rank != first[0] for rank in result.observations)


PROOFS = (Proof("ddp-static-graph-manual", _ranks_differ, case="static", recommended="plain"),)
