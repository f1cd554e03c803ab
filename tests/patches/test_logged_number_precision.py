"""PR 19046: Python numbers that are logged while bfloat16 is the default."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

PROOFS = (
    Proof(
        "logged-number-precision", sees(lambda seen: seen["metrics"]["float"] == (0.12353515625).hex()), case="default"
    ),
    Proof(
        "logged-number-precision",
        sees(lambda seen: seen["metrics"]["float"] == (0.12353515625).hex()),
        case="precision",
        since="2.1.0",
    ),
)


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("pytorch-lightning", "2.0.0", "default"), ("lightning", "2.1.2", "precision")],
)
def test_numbers_keep_their_digits(distribution, version, case):
    stock = run("logged_number_precision", Arm(distribution, version), case)
    assert stock.observations[0]["metrics"]["float"] == (0.12353515625).hex(), stock

    shim = run("logged_number_precision", Arm(distribution, version, shim=True), case, toggle="logged-number-precision")
    assert shim.ok, shim
    official = run("logged_number_precision", Arm(distribution, "2.1.3"), case)
    assert official.ok, official
    assert shim.observations == official.observations, (shim, official)
    assert abs(float.fromhex(shim.observations[0]["metrics"]["float"]) - 0.123456) < 1e-8
