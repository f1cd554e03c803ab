"""A sample of ``scripts/stress_starts`` on every Python of this machine: each way to activate, with several threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import pythons
from tests.support.scripts import load


@pytest.mark.slow
def test_concurrent_starts_never_hang(tmp_path: Path) -> None:
    stress = load("stress_starts")
    stress.prepare(tmp_path)
    outcomes = {
        (python, way): stress.start(python, tmp_path, way, seed)
        for python in pythons.with_dependencies()
        for seed, way in enumerate(stress.WAYS)
    }
    assert set(outcomes.values()) == {"well"}, outcomes
