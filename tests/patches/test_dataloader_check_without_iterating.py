"""PR 18415: a DataLoader is started once more before each run."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

PROOFS = (
    Proof("dataloader-check-without-iterating", sees(lambda seen: seen["train"] == 3), case="fit"),
    Proof("dataloader-check-without-iterating", sees(lambda seen: seen["validation"] == 2), case="validate"),
)


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("pytorch-lightning", "2.0.0", "validate"), ("pytorch-lightning", "2.0.7", "fit")],
)
def test_one_iterator_for_each_pass(distribution, version, case):
    stock = run("dataloader_check_without_iterating", Arm(distribution, version), case)
    counted = stock.observations[0]
    assert (counted["train"], counted["validation"]) == ((3, 3) if case == "fit" else (0, 2)), stock

    shim = run(
        "dataloader_check_without_iterating",
        Arm(distribution, version, shim=True),
        case,
        toggle="dataloader-check-without-iterating",
    )
    assert shim.ok, shim
    official = run("dataloader_check_without_iterating", Arm(distribution, "2.0.8"), case)
    assert official.ok, official
    assert shim.observations == official.observations, (shim, official)


def test_what_cannot_be_iterated_over_is_refused():
    shim = run(
        "dataloader_check_without_iterating",
        Arm("pytorch-lightning", "2.0.7", shim=True),
        "invalid",
        toggle="dataloader-check-without-iterating",
    )
    assert not shim.ok, shim
    assert shim.observations[0]["error"].startswith("TypeError: An invalid dataloader was passed"), shim
