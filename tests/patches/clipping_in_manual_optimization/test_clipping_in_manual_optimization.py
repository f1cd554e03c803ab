"""Issue 14598: the Trainer refuses gradient_clip_val for a model with manual optimization."""

import pytest

from tests.equivalence.proof import Proof, ends_with, only
from tests.support.variants import Variant, run

NAME = "clipping-in-manual-optimization"
REFUSED = "Automatic gradient clipping is not supported for manual optimization"


def observed(version, case, shim=True):
    variant = Variant("pytorch-lightning", version, shim)
    (seen,) = run(
        "clipping_in_manual_optimization", variant, case, toggle=f"default,{NAME}" if shim else None
    ).observations
    return seen


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_model_that_also_clips_gets_the_same_result(version):
    """By value; by norm the second time multiplies by 0.5 / (0.5 + 0.000001), as torch does it."""
    assert observed(version, "value-both") == observed(version, "value-called", shim=False)


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_gradients_without_a_clip_value_are_unchanged(version):
    assert observed(version, "zero") == observed(version, "zero", shim=False)


def test_accumulation_is_refused_as_on_stock():
    assert "Automatic gradient accumulation is not supported" in observed("2.6.6", "accumulated")["error"]


def test_patch_is_opt_in():
    result = run("clipping_in_manual_optimization", Variant("pytorch-lightning", "2.6.6", True), "norm")
    assert not result.ok and REFUSED in result.output


PROOFS = tuple(
    Proof(NAME, ends_with(REFUSED), case, observed=only("norms", "layer", "other"), recommended=f"{case}-called")
    for case in ("norm", "value", "mixed")
)
