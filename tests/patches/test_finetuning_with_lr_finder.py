"""PR 21224: KeyError: 0 with LearningRateFinder and BackboneFinetuning."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run

PROOFS = (Proof("finetuning-with-lr-finder", ends_with("KeyError: 0"), case="finder"),)


@pytest.mark.parametrize(
    ("distribution", "version", "case"), [("pytorch-lightning", "2.0.0", "finder"), ("lightning", "2.5.6", "finder")]
)
def test_both_callbacks_work(distribution, version, case):
    stock = run("finetuning_with_lr_finder", Arm(distribution, version), case)
    assert stock.observations == [{"error": "KeyError: 0"}], stock

    shim = run(
        "finetuning_with_lr_finder", Arm(distribution, version, shim=True), case, toggle="finetuning-with-lr-finder"
    )
    assert shim.ok, shim
    official = run("finetuning_with_lr_finder", Arm(distribution, "2.6.0"), case)
    assert official.ok, official
    groups = shim.observations[0]["groups"]
    assert groups[-2:] == official.observations[0]["groups"][-2:] == [[2, 2], [2, 2]], (shim, official)


def test_resuming_restores_the_groups_as_before():
    stock = run("finetuning_with_lr_finder", Arm("lightning", "2.5.6"), "resume")
    shim = run(
        "finetuning_with_lr_finder", Arm("lightning", "2.5.6", shim=True), "resume", toggle="finetuning-with-lr-finder"
    )
    assert stock.observations[0]["groups"] == [[2, 2]], stock
    assert shim.observations == stock.observations, (stock, shim)
