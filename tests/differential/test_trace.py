"""What is over leaves no trace: a module trains, and the process is, as if nothing had come before."""

from __future__ import annotations

import pytest

from tests.support.variants import Variant, distribution_of, run

STEPS = ("training", "validation", "predict", "loader", "interrupt", "search", "lr", "validated")


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
@pytest.mark.parametrize("step", STEPS)
def test_module_trains_as_if_nothing_had_come_before(step: str, version: str) -> None:
    variant = Variant(distribution_of(version), version, True)
    after, new = (run("trace", variant, case) for case in (step, "new"))
    assert after.ok and new.ok, (after, new)
    assert after.observations[0] == new.observations[0]


def test_trace_is_detected_on_stock() -> None:
    """Shows that the test can fail."""
    variant = Variant(distribution_of("2.6.6"), "2.6.6", False)
    after, new = (run("trace", variant, case) for case in ("validation", "new"))
    assert after.observations[0] != new.observations[0]
