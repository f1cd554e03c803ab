"""PR 20775: a resumed training iterates over its data twice."""

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

PROOFS = (
    Proof("resume-single-iteration", sees(lambda seen: seen["iterations"] == 3), case="stream"),
    Proof("resume-single-iteration", sees(lambda seen: seen["iterations"] == 3), case="shuffle"),
)


def test_who_resumes_with_shuffled_data_is_told_of_its_order():
    for case, times in (("shuffle", 1), ("workers", 1), ("stream", 0)):
        shim = run("resume_single_iteration", Arm("lightning", "2.2.5", shim=True), case)
        assert shim.ok and shim.output.count("resume-single-iteration: ") == times, shim


def test_the_order_of_what_is_handed_to_workers_is_that_of_the_fixed_release():
    stock, shim, official = (
        run("resume_single_iteration", arm, "workers").observations[0]["trained"]
        for arm in (Arm("lightning", "2.5.2"), Arm("lightning", "2.5.2", shim=True), Arm("lightning", "2.5.3"))
    )
    assert stock != shim == official


def test_a_finder_that_searches_in_a_later_epoch_takes_no_batches_of_it():
    whole = list(range(1, 9)) * 3
    for toggle in ("resume-single-iteration", "lr-finder-train-loader,resume-single-iteration"):
        shim = run("resume_single_iteration", Arm("lightning", "2.5.2", shim=True), "finder", toggle=toggle)
        assert shim.ok, shim
        assert shim.observations[0]["trained"] == whole, shim
