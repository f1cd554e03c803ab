"""What random programs log equals the values computed in plain Python."""

from __future__ import annotations

import time

import pytest

from tests.differential import resume

DAILY = int(time.time() // 86400) % 1000 * 1000


def counted(version: str, patches: str, seeds: str) -> resume.Differences:
    return resume.differences(version, patches, (seeds,), limit=3000, program="logged.py")


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_logged_values_are_those_computed_by_hand(version: str) -> None:
    found = counted(version, "default,exact", "0-50")
    assert {seed: differs for seed, differs in found.items() if differs} == {}


def test_lost_batch_is_detected_on_stock() -> None:
    """Shows that the test can fail."""
    assert any(differs for differs in counted("2.6.6", "stock", "0-50").values())


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_no_program_is_worse_than_on_stock(version: str) -> None:
    seeds = f"{DAILY}-{DAILY + 200}"
    stock, default, exact = (counted(version, patches, seeds) for patches in ("stock", "default", "all"))
    assert not {seed for seed, differs in default.items() if differs and not stock[seed]}
    assert {seed: differs for seed, differs in exact.items() if differs} == {}
