import pytest

from tests.support.programs import Program, ends_with, only

PROGRAM = Program("clipping-in-manual-optimization", "2.6.6", "pytorch-lightning")
REFUSED = "Automatic gradient clipping is not supported for manual optimization"


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_model_that_also_clips_gets_the_same_result(version):
    """Clips by value. By norm, torch would multiply by 0.5 / (0.5 + 0.000001) the second time."""
    assert PROGRAM.shim("value-both", version).facts == PROGRAM.stock("value-called", version).facts


def test_accumulation_is_refused_as_on_stock():
    (rank,) = PROGRAM.shim("accumulated").observations
    assert "Automatic gradient accumulation is not supported" in rank["error"]


test_gradients_without_a_clip_value_are_unchanged = PROGRAM.unchanged("zero", on=("2.0.0", "2.6.6"))


PROOFS = PROGRAM.proofs(
    ends_with(REFUSED), "norm", "value", "mixed", recommended="{}-called", observed=only("norms", "layer", "other")
)
