import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.programs import Program
from tests.support.variants import Variant, run

PROGRAM = Program("resume-single-iteration", "2.2.5")

PROOFS = (
    Proof("resume-single-iteration", sees(lambda seen: seen["iterations"] == 3), case="stream"),
    Proof("resume-single-iteration", sees(lambda seen: seen["iterations"] == 3), case="shuffle"),
)


def test_resume_warns_about_different_random_numbers():
    for case, times in (("shuffle", 1), ("workers", 1), ("dropout", 1), ("finder", 0)):
        shim = PROGRAM.shim(case)
        assert shim.ok and shim.output.count("resume-single-iteration: ") == times, shim


@pytest.mark.parametrize(("case", "what"), [("workers", "trained"), ("dropout", "drawn")])
def test_random_numbers_after_a_resume_equal_the_fixed_release(case, what):
    """Compares the order of items for workers, and dropout with unshuffled data."""
    stock, shim, official = (
        run("resume_single_iteration", variant, case).observations[0][what]
        for variant in (
            Variant("lightning", "2.5.2"),
            Variant("lightning", "2.5.2", shim=True),
            Variant("lightning", "2.5.3"),
        )
    )
    assert stock != shim == official


def test_finder_in_a_later_epoch_consumes_no_batches():
    whole = list(range(1, 9)) * 3
    for toggle in ("resume-single-iteration", "lr-finder-train-loader,resume-single-iteration"):
        shim = PROGRAM.shim("finder", "2.5.2", toggle=toggle)
        assert shim.ok, shim
        assert shim.observations[0]["trained"] == whole, shim
