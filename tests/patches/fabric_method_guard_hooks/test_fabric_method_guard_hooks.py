from functools import cache

import pytest

from tests.equivalence.proof import only, proofs, sees
from tests.support.variants import Variant, run

CLEAN = {"hooks": [0, 0], "saved": "NoneType", "after": "seen"}


@cache
def observed(variant, case):
    result = run("fabric_method_guard_hooks", variant, case)
    assert result.ok and len(result.observations) == 1, result
    seen = dict(result.observations[0])
    return seen.pop("call"), seen


@pytest.mark.parametrize("case", ["refused", "failing"])
@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.1.1"), ("lightning", "2.6.6")])
def test_refused_or_failing_call_leaves_no_hook(distribution, version, case):
    call, left = observed(Variant(distribution, version), case)
    assert left["hooks"] == [3, 3] and "_wrap_method_with_module_call_tracker.<locals>.hook" in left["saved"]
    assert ("from outside the" in left["after"]) is (case == "refused")
    assert observed(Variant(distribution, version, shim=True), case) == (call, CLEAN)


def test_module_without_a_refused_call_is_unchanged():
    assert observed(Variant("lightning", "2.6.6"), "accepted") == ("seen", CLEAN)
    assert observed(Variant("lightning", "2.6.6", shim=True), "accepted") == ("seen", CLEAN)


_LEFT = only("hooks", "saved", "after")
PROOFS = proofs(
    "fabric-method-guard-hooks",
    sees(lambda seen: seen["hooks"] != [0, 0]),
    "refused",
    "failing",
    recommended="accepted",
    observed=_LEFT,
    note="the refused or failing call itself is left out: the recommended usage has none",
)
