"""Fixtures of the unit tests."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest

from tests.unit.commands import Audit, Diagnose
from tests.unit.fakes import World


@pytest.fixture(autouse=True)
def wide_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences stay on one line, so that tests find them."""
    monkeypatch.setenv("COLUMNS", "10000")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """This process with stand-ins for Lightning on its path."""
    made = World(tmp_path, monkeypatch)
    yield made
    made.leave()


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Audit:
    """``audit`` without a toggle."""
    monkeypatch.delenv("LIGHTNING_PATCHES", raising=False)
    return Audit("audit", tmp_path, capsys)


@pytest.fixture
def diagnose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Diagnose:
    """``diagnose`` without a toggle."""
    monkeypatch.delenv("LIGHTNING_PATCHES", raising=False)
    return Diagnose("diagnose", tmp_path, capsys)
