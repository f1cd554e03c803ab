import pytest

from tests.support.programs import Program, proofs, sees

PROGRAM = Program("resume-single-iteration", "2.2.5")

PROOFS = proofs(PROGRAM.patch, sees(lambda seen: seen["iterations"] == 3), "stream", "shuffle")

test_reloaded_loader_is_started_as_in_the_uninterrupted_run = PROGRAM.unchanged("reload")


@pytest.mark.parametrize(("case", "what"), [("workers", "trained"), ("dropout", "drawn")])
def test_random_numbers_after_a_resume_equal_the_fixed_release(case, what):
    """Compares the order of items for workers, and dropout with unshuffled data."""
    results = *PROGRAM.both(case, "2.5.2"), PROGRAM.stock(case, "2.5.3")
    stock, shim, official = (result.facts[what] for result in results)
    assert stock != shim == official


def test_finder_in_a_later_epoch_consumes_no_batches():
    whole = list(range(1, 9)) * 3
    for toggle in ("resume-single-iteration", "lr-finder-train-loader,resume-single-iteration"):
        assert PROGRAM.shim("finder", "2.5.2", toggle=toggle).facts["trained"] == whole
