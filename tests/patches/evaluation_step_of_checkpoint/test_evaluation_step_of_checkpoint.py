from operator import itemgetter

import pytest

from tests.support.programs import Program, only, sees

PROGRAM = Program("evaluation-step-of-checkpoint", "2.6.6", "pytorch-lightning", alone=True)


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
@pytest.mark.parametrize(("case", "last"), [("fitted", (3, 6)), ("new", (0, 0))])
def test_evaluation_has_the_epoch_and_step_of_the_checkpoint(version, case, last):
    stock, shim, file = (
        PROGRAM.stock(case, version).facts,
        PROGRAM.shim(case, version).facts,
        PROGRAM.stock("file", version).facts,
    )
    assert (stock["epoch"], stock["step"]) == (stock["epoch_after"], stock["step_after"]) == last
    assert (shim["epoch"], shim["step"]) == (file["epoch"], file["step"]) == (0, 2)
    assert stock["logged"] == [last[1]] and shim["logged"] == [2]
    assert (shim["epoch_after"], shim["step_after"]) == last


@pytest.mark.parametrize("case", ["validate", "predict"])
def test_validate_and_predict_have_the_step_of_the_checkpoint(case):
    assert itemgetter("epoch", "step")(PROGRAM.shim(case).facts) == (0, 2)


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_training_continues_unchanged(version):
    stock, shim = (result.facts for result in PROGRAM.both("goes-on", version))
    assert (shim["epoch_after"], shim["step_after"]) == (stock["epoch_after"], stock["step_after"]) == (4, 8)


test_evaluation_without_a_checkpoint_is_unchanged = PROGRAM.unchanged("weights")


PROOFS = PROGRAM.proofs(
    sees(lambda seen: (seen["epoch"], seen["step"]) != (0, 2)),
    "fitted",
    "new",
    recommended="file",
    observed=only("epoch", "step"),
)
