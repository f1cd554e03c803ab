from typing import Any

import pytest

from tests.support.programs import Program
from tests.support.variants import Variant, run

PROGRAM = Program("ddp-static-graph-manual", "2.5.6")

pytestmark = pytest.mark.distributed
FITS = ("first fit", "second fit")


def observed(variant, case="static"):
    """Return the observations of both ranks in each fit."""
    result = run("ddp_static_graph_manual", variant, case)
    assert result.ok and len(result.observations) == 2, result
    return {fit: [rank[fit] for rank in result.observations] for fit in FITS}


def in_step(fit):
    first, second = fit
    return first == second


def test_two_backwards_in_a_step_warn_and_end_as_in_the_fixed_release():
    stock, shim, official = (
        run("ddp_static_graph_manual", variant, "two")
        for variant in (
            Variant("lightning", "2.2.5"),
            Variant("lightning", "2.2.5", shim=True),
            Variant("lightning", "2.6.6"),
        )
    )
    assert stock.ok and not in_step([rank["first fit"] for rank in stock.observations]), stock
    for ended in (shim, official):
        assert not ended.ok and "Your training graph has changed" in ended.output, ended
    said = [text for rank in shim.observations for text in rank["warnings"]]
    assert said and all("this training_step runs a second backward" in text for text in said), shim
    assert not any(rank["warnings"] for rank in official.observations)


@pytest.mark.parametrize(("version", "broken"), [("2.5.6", FITS), ("2.6.6", FITS[1:])])
def test_ranks_stay_in_step_in_fits_that_stock_breaks(version, broken):
    stock = observed(Variant("lightning", version))
    assert tuple(fit for fit in FITS if not in_step(stock[fit])) == broken, stock


def test_no_sync_in_the_first_backward_causes_a_warning():
    stock = observed(Variant("lightning", "2.5.6"), "no_sync")
    assert not in_step(stock["first fit"])
    shim = PROGRAM.shim("no_sync")
    assert shim.ok and [rank["warnings"] for rank in shim.observations] == [
        [
            f"[rank {rank}] DDPStrategy(static_graph=True): the first backward of manual optimization was under"
            " no_sync(). torch does not support that with a static graph, and the ranks will not average their"
            " gradients. Remove static_graph=True or no_sync()."
        ]
        for rank in (0, 1)
    ], shim


def _ranks_differ(result: Any) -> bool:
    first = result.observations[:1]
    return any(rank != first[0] for rank in result.observations)


def _ranks_agree(result: Any) -> bool:
    return len(result.observations) == 2 and not _ranks_differ(result)


PROOFS = PROGRAM.proofs(_ranks_differ, "static", recommended="plain", right=_ranks_agree)
