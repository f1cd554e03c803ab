"""PR 19542: a subclass of a deprecated precision plugin recurses without end."""

import pytest

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run

NAME = "deprecated-precision-subclass"


@pytest.mark.parametrize("case", ["PrecisionPlugin:0", "FSDPMixedPrecisionPlugin:1"])
def test_working_plugins_are_created_as_on_stock(case):
    stock, shim = (
        run("deprecated_precision_subclass", Variant("lightning", "2.2.0", shim), case, toggle=NAME if shim else None)
        for shim in (False, True)
    )
    assert stock.observations == shim.observations
    assert stock.ok == shim.ok
    assert "RecursionError" not in stock.output


PROOFS = tuple(
    Proof(
        NAME,
        ends_with("RecursionError: maximum recursion depth exceeded"),
        case=case,
        since="2.2.0",
        right=sees(lambda seen: seen["steps"] == 2 and seen["made"] == "Mine"),
    )
    for case in ("PrecisionPlugin:1", "DoublePrecisionPlugin:1", "MixedPrecisionPlugin:2")
)
