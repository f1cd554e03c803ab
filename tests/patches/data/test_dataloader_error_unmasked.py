from __future__ import annotations

from typing import Any

import pytest

from tests.support.programs import Program

PROGRAM = Program("dataloader-error-unmasked", "2.0.9")

MASKED = "RuntimeError: Please call `iter(combined_loader)` first."

CAUSE = "TypeError: cannot pickle '_thread.lock' object"

HIDDEN_IN_STOCK = ("workers", "several_loaders", "dataloader_iter")

SIGTERM = 15


def assert_right(found: dict[str, Any]) -> None:
    """Check that every error is raised unchanged, and that every Trainer has cleaned up."""
    for way in (*HIDDEN_IN_STOCK, "validation"):
        assert found[way]["error"] == CAUSE, way
        assert found[way]["callbacks_told"] == ["TypeError"], way
    for way in ("iterable", "sized_iterable"):
        assert found[way]["error"] == "ConnectionError: the data server is down", way
    for way in (*HIDDEN_IN_STOCK, "validation", "iterable", "sized_iterable"):
        assert found[way]["hijacked_signals"] == [], way
        assert (found[way]["status"], found[way]["stage"]) == ("interrupted", None), way
    assert found["none"] == {
        "error": None,
        "callbacks_told": [],
        "hijacked_signals": [],
        "status": "finished",
        "stage": None,
    }
    assert found["again"] == {"first": "TypeError", "steps": 2, "status": "finished"}


@pytest.mark.parametrize(
    ("distribution", "version"), [("lightning", "2.1.0"), ("pytorch-lightning", "2.3.3"), ("lightning", "2.6.6")]
)
def test_error_of_a_worker_is_raised_unchanged(distribution: str, version: str) -> None:
    stock = PROGRAM.stock(version=version, distribution=distribution).facts
    for way in HIDDEN_IN_STOCK:
        assert stock[way]["error"] == MASKED, way
        assert stock[way]["callbacks_told"] == ["TypeError"], way  # part of the clean-up ran before it failed
        assert SIGTERM in stock[way]["hijacked_signals"], way
        assert stock[way]["stage"] == "train", way
    assert stock["validation"]["error"] == CAUSE  # only the training loader's errors are hidden
    assert_right(PROGRAM.shim(version=version, distribution=distribution).facts)


def test_release_before_the_bug_is_unchanged() -> None:
    stock = PROGRAM.stock().facts
    assert_right(stock)
    assert PROGRAM.shim().facts == stock
