import pytest

from tests.support.programs import Program, only, sees

PROGRAM = Program("early-stopping-before-minimum", "2.6.6")


@pytest.mark.parametrize("case", ["steps", "finite"])
def test_training_continues_if_the_metric_has_recovered(case):
    assert PROGRAM.stock(case).facts["epochs"] == 6
    shim = PROGRAM.shim(case).facts
    assert (shim["epochs"], shim["stopped"], shim["reason"]) == (10, 0, "EarlyStoppingReason.NOT_STOPPED")
    assert not shim["said"]


@pytest.mark.parametrize("case", ["never", "two", "asked", "time"])
def test_other_stops_are_unchanged(case):
    """Cases: the metric stays bad, or another EarlyStopping, a callback or a Timer requests the stop."""
    stock, shim = (result.facts for result in PROGRAM.both(case))
    assert stock["epochs"] == shim["epochs"] == 6 and shim["wishes"] == stock["wishes"]
    assert shim == stock or case != "never"


def test_later_stop_is_kept():
    assert PROGRAM.stock("again").facts["wishes"] == [False] * 3 + [True] * 3
    shim = PROGRAM.shim("again").facts
    assert shim["wishes"] == [False] * 3 + [True] + [False] * 2
    assert (shim["epochs"], shim["stopped"]) == (6, 5)


PROOFS = PROGRAM.proofs(
    sees(lambda seen: (seen["epochs"], seen["stopped"]) == (6, 3)),
    recommended="patient",
    observed=only("epochs", "stopped"),
    right=sees(lambda seen: (seen["epochs"], seen["stopped"], seen["wishes"][5]) == (10, 0, False)),
)
