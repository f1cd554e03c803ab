"""Issues 17415 and 20233: the checkpoint of a model with compiled parts has names that no other model has."""

import pytest

from tests.equivalence.proof import Proof
from tests.support.variants import Variant, run

NAME = "checkpoint-without-orig-mod"


def observed(case, toggle, version="2.6.6"):
    result = run("checkpoint_without_orig_mod", Variant("lightning", version, toggle is not None), case, toggle=toggle)
    return result.ok, result.observations[0]


@pytest.mark.parametrize("case", ["none", "twins"])
def test_ambiguous_names_are_unchanged(case):
    stock, shim = observed(case, None), observed(case, f"default,{NAME}")
    assert stock[0] is (case == "none")
    assert stock == shim


@pytest.mark.parametrize("version", ["2.1.0", "2.6.6"])
def test_compiled_model_resumes_from_it(version):
    stock, shim = (observed("parts-resumed", toggle, version) for toggle in (None, f"default,{NAME}"))
    assert stock[0] is False and shim[0] is True
    assert shim[1]["resumed"] == stock[1]["resumed"]
    assert not any("_orig_mod" in name for name in shim[1]["saved"])


def test_patch_is_opt_in():
    assert observed("parts", "default")[0] is False


PROOFS = tuple(
    Proof(
        NAME,
        lambda result: not result.ok and "_orig_mod" in result.output and "Unexpected key(s)" in result.output,
        case=case,
        recommended=f"{case}-renamed",
    )
    for case in ("parts", "whole")
)
