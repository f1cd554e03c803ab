"""PR 20896: with RichProgressBar a metric that is no number ends the training."""

import pytest

from tests.equivalence.proof import Proof, ends_with, observes, sees
from tests.support.variants import Variant, run

NAME = "rich-metrics-of-any-type"
SHOWN = {"number": "0.123", "text": "well"}


@pytest.mark.parametrize("case", SHOWN)
@pytest.mark.parametrize("version", ["2.1.0", "2.5.6"])
def test_numeric_metrics_are_displayed_as_on_stock(version, case):
    stock, shim = (
        run("rich_metrics_of_any_type", Variant("lightning", version, shim), case, toggle=NAME if shim else None)
        for shim in (False, True)
    )
    assert stock.observations == shim.observations == [{"steps": 2, "shown": [SHOWN[case]]}]


def test_tensor_with_several_values_does_not_end_the_training():
    stock, shim = (
        run("rich_metrics_of_any_type", Variant("lightning", "2.5.6", shim), "tensor", toggle=NAME if shim else None)
        for shim in (False, True)
    )
    assert "unsupported format string passed to Tensor.__format__" in stock.output
    assert sees(lambda seen: seen["steps"] == 2)(shim)


PROOFS = tuple(
    Proof(
        NAME,
        ends_with(f"TypeError: unsupported format string passed to {kind}.__format__"),
        case=case,
        right=observes({"steps": 2, "shown": [shown]}),
    )
    for case, kind, shown in (("none", "NoneType", "None"), ("list", "list", "[1, 2]"), ("dict", "dict", "{'a': 1}"))
)
