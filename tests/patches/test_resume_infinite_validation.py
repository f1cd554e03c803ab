"""Issue 20565: resuming fails if the validation set has no length."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run

PROOFS = (
    Proof(
        "resume-infinite-validation",
        ends_with("OverflowError: cannot convert float infinity to integer"),
        case="stream",
    ),
)


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("pytorch-lightning", "2.5.0", "stream"), ("lightning", "2.5.0.post0", "stream")],
)
def test_training_resumes(distribution, version, case):
    stock = run("resume_infinite_validation", Arm(distribution, version), case)
    assert not stock.ok, stock
    assert stock.observations == [{"error": "OverflowError: cannot convert float infinity to integer"}], stock

    shim = run(
        "resume_infinite_validation", Arm(distribution, version, shim=True), case, toggle="resume-infinite-validation"
    )
    assert shim.ok, shim
    official = run("resume_infinite_validation", Arm(distribution, "2.5.1"), case)
    assert official.ok, official
    assert shim.observations == official.observations, (shim, official)
