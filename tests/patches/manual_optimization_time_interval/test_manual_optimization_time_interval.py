"""PR 21699: with manual optimization, train_time_interval saves nothing."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run


def seen(case, shim, toggle="all"):
    result = run("manual_optimization_time_interval", Variant("lightning", "2.6.6", shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", ["automatic", "steps", "hour"])
def test_other_intervals_save_as_on_stock(case):
    """With automatic optimization, at every step, and where the interval has not passed yet."""
    stock = seen(case, shim=False)
    assert stock["steps"] == ([] if case == "hour" else [1, 2, 3, 4])
    assert seen(case, shim=True) == stock


def test_waits_for_a_metric_of_the_validation():
    assert seen("monitor", shim=False)["steps"] == []
    assert seen("monitor", shim=True)["steps"] == [2, 3, 4]


PROOFS = (
    Proof(
        "manual-optimization-time-interval",
        sees(lambda seen: seen["steps"] == []),
        observed=only("steps", "weights", "trained"),
        recommended="steps",
        right=sees(lambda seen: seen["steps"] == [1, 2, 3, 4] and seen["weights"][-1] == seen["trained"]),
    ),
)
