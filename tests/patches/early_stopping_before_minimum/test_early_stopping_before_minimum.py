"""Issue 19966: EarlyStopping decides before min_epochs, the metric recovers, and the run ends all the same."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run


def seen(case, shim=False, version="2.6.6"):
    result = run("early_stopping_before_minimum", Variant("lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", ["steps", "finite"])
def test_training_continues_if_the_metric_has_recovered(case):
    assert seen(case)["epochs"] == 6
    shim = seen(case, shim=True)
    assert (shim["epochs"], shim["stopped"], shim["reason"]) == (10, 0, "EarlyStoppingReason.NOT_STOPPED")
    assert not shim["said"]


@pytest.mark.parametrize("case", ["never", "two", "asked", "time"])
def test_other_stops_are_unchanged(case):
    """Cases: the metric stays bad, or another EarlyStopping, a callback or a Timer requests the stop."""
    stock = seen(case)
    assert stock["epochs"] == 6
    shim = seen(case, shim=True)
    assert (shim["epochs"], shim["wishes"]) == (6, stock["wishes"])
    if case == "never":
        assert shim == stock


def test_later_stop_is_kept():
    assert seen("again")["wishes"] == [False] * 3 + [True] * 3
    shim = seen("again", shim=True)
    assert shim["wishes"] == [False] * 3 + [True] + [False] * 2
    assert (shim["epochs"], shim["stopped"]) == (6, 5)


PROOFS = (
    Proof(
        "early-stopping-before-minimum",
        sees(lambda seen: (seen["epochs"], seen["stopped"]) == (6, 3)),
        observed=only("epochs", "stopped"),
        recommended="patient",
        right=sees(lambda seen: (seen["epochs"], seen["stopped"], seen["wishes"][5]) == (10, 0, False)),
    ),
)
