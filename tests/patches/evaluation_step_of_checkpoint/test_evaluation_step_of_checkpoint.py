"""Issue 20052: test(ckpt_path=...) logs at the last step, or at step 0."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run

NAME = "evaluation-step-of-checkpoint"


def seen(version, case, toggle=None):
    variant = Variant("pytorch-lightning", version, shim=toggle is not None)
    result = run("evaluation_step_of_checkpoint", variant, case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
@pytest.mark.parametrize(("case", "last"), [("fitted", (3, 6)), ("new", (0, 0))])
def test_epoch_and_step_are_those_of_the_checkpoint(version, case, last):
    stock, shim, file = seen(version, case), seen(version, case, NAME), seen(version, "file")
    assert (stock["epoch"], stock["step"]) == (stock["epoch_after"], stock["step_after"]) == last
    assert (shim["epoch"], shim["step"]) == (file["epoch"], file["step"]) == (0, 2)
    assert stock["logged"] == [last[1]] and shim["logged"] == [2]
    assert (shim["epoch_after"], shim["step_after"]) == last


@pytest.mark.parametrize("case", ["validate", "predict"])
def test_validation_and_prediction(case):
    shim = seen("2.6.6", case, NAME)
    assert (shim["epoch"], shim["step"]) == (0, 2)


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_training_continues_unchanged(version):
    stock, shim = seen(version, "goes-on"), seen(version, "goes-on", NAME)
    assert (shim["epoch_after"], shim["step_after"]) == (stock["epoch_after"], stock["step_after"]) == (4, 8)


def test_evaluation_without_a_checkpoint_is_unchanged():
    assert seen("2.6.6", "weights") == seen("2.6.6", "weights", NAME)


def test_patch_is_opt_in():
    assert seen("2.6.6", "fitted") == seen("2.6.6", "fitted", "default")


PROOFS = tuple(
    Proof(
        NAME,
        sees(lambda seen: (seen["epoch"], seen["step"]) != (0, 2)),
        case=case,
        recommended="file",
        observed=only("epoch", "step"),
    )
    for case in ("fitted", "new")
)
