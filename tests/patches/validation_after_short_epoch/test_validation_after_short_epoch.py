"""Issue 19624: the validation at the end of an epoch, where the data ends before its length says so."""

from functools import cache

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


@cache
def seen(distribution, version, case="", shim=False):
    result = run("validation_after_short_epoch", Variant(distribution, version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_validation_within_the_epoch_and_at_its_end(version):
    stock, shim = (seen("lightning", version, "half", on) for on in (False, True))
    assert stock["seen"].count("validate") == 2
    assert shim["seen"].count("validate") == 4
    assert shim["seen"].index("epoch") - 1 == max(i for i, what in enumerate(shim["seen"][:12]) if what == "validate")


@pytest.mark.parametrize("case", ["fifth", "uneven", "skip"])
def test_no_validation_that_is_not_due(case):
    """It has just run, or is not due at the end of an epoch, or the program ended the epoch."""
    stock, shim = (seen("lightning", "2.6.6", case, on) for on in (False, True))
    assert {**stock, "lr": 0, "weights": 0} == {**shim, "lr": 0, "weights": 0}


def test_accumulated_gradients_are_kept():
    stock, shim = (seen("lightning", "2.6.6", "every-2", on) for on in (False, True))
    assert shim["seen"].count("validate") == 2 and "zero_grad" not in shim["seen"]
    assert [what for what in shim["seen"] if what != "validate"] == stock["seen"]


PROOFS = tuple(
    Proof(
        "validation-after-short-epoch",
        sees(lambda seen: "validate" not in seen["seen"] and seen["lr"] == (0.1).hex()),
        case=case,
        recommended=f"{case}-right",
        right=sees(lambda seen: seen["seen"].count("validate") == 2),
    )
    for case in ("", "plateau")
)
