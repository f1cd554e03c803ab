"""Fixtures of the unit tests."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest

from tests.unit.fakes import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """This process with stand-ins for Lightning on its path."""
    made = World(tmp_path, monkeypatch)
    yield made
    made.leave()
