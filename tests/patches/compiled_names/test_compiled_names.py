"""Issues 17415 and 20233: a checkpoint is loaded by a model that is compiled differently."""

import pytest

from tests.differential.trial import difference
from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


def observed(version, case, shim=True):
    result = run("compiled_names", Variant("pytorch-lightning", version, shim), case)
    return result.ok, result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
@pytest.mark.parametrize("case", ["other", "missing", "shape", "old", "part"])
def test_strict_is_strict_about_all_others(version, case):
    """The weights stay unchanged: a program may catch the error, and train on."""
    stock, shim = (observed(version, case, on) for on in (False, True))
    assert not stock[0] and "Missing key(s)" in stock[1]["error"] and "layer.weight" in stock[1]["untouched"], stock
    assert shim == stock


@pytest.mark.parametrize("case", ["own", "bare"])
def test_model_with_a_custom_method_loads(case):
    assert observed("2.6.6", case, shim=False)[0] is False
    assert observed("2.6.6", case)[1]["same"]


def test_load_that_is_not_strict_is_unchanged():
    """torch raises no error. Mismatched entries are not loaded."""
    stock, shim = (observed("2.6.6", "loose", shim) for shim in (False, True))
    assert stock[0] and shim[0] and not stock[1]["same"] and not shim[1]["same"]


def test_model_with_a_traced_part_refuses_as_on_stock():
    assert not difference("traced", "2.6.6", "compiled-names")


PROOFS = tuple(
    Proof(
        "compiled-names",
        lambda result: not result.ok and "_orig_mod" in result.output and "Missing key(s)" in result.output,
        case=case,
        recommended=f"{case}-same",
        right=sees(lambda seen, trains=trains: seen["same"] is not trains),
    )
    for case, trains in (("load", False), ("test", False), ("fit", True), ("plain", True), ("inner", True))
)
