from typing import Any

import pytest

from tests.support.programs import Observations, Program, sees
from tests.support.variants import Variant, run

PROGRAM = Program(
    "log-metrics-without-move", "2.6.6", scenario="logged_metrics_device", options={"simulated_cuda": True}
)


def observed(variant, case="cpu"):
    """Return the moves in each step, except the first of an epoch, and the metrics of each fit."""
    result = run("log_metrics_without_move", variant, case, simulated_cuda=case == "gpu")
    assert result.ok, result
    fits = result.observations[0].values()
    return [moves for fit in fits for moves in fit["moves"]], [fit["metrics"] for fit in fits]


@pytest.mark.parametrize(("distribution", "version", "case"), [("lightning", "2.6.6", "gpu")])
def test_metrics_on_their_device_are_not_moved(distribution, version, case):
    stock_moves, stock_metrics = observed(Variant(distribution, version), case)
    assert min(stock_moves) > 0, stock_moves
    moves, metrics = observed(Variant(distribution, version, shim=True), case)
    assert max(moves) == 0, moves
    assert metrics == stock_metrics


def test_backport_of_19814_moves_no_metrics():
    moves, metrics = observed(Variant("lightning", "2.3.3", shim=True), "gpu")
    assert max(moves) == 0, moves
    assert metrics == observed(Variant("lightning", "2.6.6"), "gpu")[1]


test_metrics_of_an_earlier_search_are_still_moved = pytest.mark.distributed(PROGRAM.unchanged("lr_find", on=("2.4.0",)))
test_metrics_of_an_earlier_run_are_still_moved = pytest.mark.distributed(PROGRAM.unchanged("fit_twice"))


def _moves(observations: Observations) -> Any:
    """Return the metrics of each fit, and True if anything was moved for them."""
    return [{fit: [max(seen["moves"]) > 0, seen["metrics"]] for fit, seen in rank.items()} for rank in observations]


def _without_moves(observations: Observations) -> Any:
    """Return the same metrics, and False."""
    return [{fit: [False, seen["metrics"]] for fit, seen in rank.items()} for rank in observations]


PROOFS = PROGRAM.proofs(
    sees(lambda seen: min(seen["first fit"]["moves"]) > 0), "cpu", observed=_moves, recommended_observed=_without_moves
)
