"""PR 20775: a resumed training iterates over its data twice."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

PROOFS = (
    Proof("resume-single-iteration", sees(lambda seen: seen["iterations"] == 3), case="stream"),
    Proof("resume-single-iteration", sees(lambda seen: seen["iterations"] == 3), case="shuffle"),
)


@pytest.mark.parametrize(
    ("distribution", "version", "case"), [("pytorch-lightning", "2.1.0", "stream"), ("lightning", "2.5.2", "shuffle")]
)
def test_one_iterator_for_each_epoch(distribution, version, case):
    stock = run("resume_single_iteration", Arm(distribution, version), case)
    assert stock.observations[0]["iterations"] == 3, stock

    shim = run("resume_single_iteration", Arm(distribution, version, shim=True), case, toggle="resume-single-iteration")
    assert shim.ok, shim
    official = run("resume_single_iteration", Arm(distribution, "2.5.3"), case)
    assert official.ok, official
    assert shim.observations == official.observations, (shim, official)


def test_a_finder_that_searches_in_a_later_epoch_takes_no_batches_of_it():
    whole = list(range(1, 9)) * 3
    for toggle in ("resume-single-iteration", "lr-finder-train-loader,resume-single-iteration"):
        shim = run("resume_single_iteration", Arm("lightning", "2.5.2", shim=True), "finder", toggle=toggle)
        assert shim.ok, shim
        assert shim.observations[0]["trained"] == whole, shim
