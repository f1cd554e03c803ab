"""A sample of ``scripts/stress_starts``, on every Python at hand: each way in, with threads in the way."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from typing import Any

from tests.support import pythons
from tests.unit.fakes import ROOT


def script() -> Any:
    loader = importlib.machinery.SourceFileLoader("stress_starts", str(ROOT / "scripts" / "stress_starts"))
    spec = importlib.util.spec_from_loader("stress_starts", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_no_start_hangs_and_every_verdict_is_true(tmp_path: Path) -> None:
    stress = script()
    stress.prepare(tmp_path)
    outcomes = {
        (python, way): stress.start(python, tmp_path, way, seed)
        for python in pythons.with_dependencies()
        for seed, way in enumerate(stress.WAYS)
    }
    assert set(outcomes.values()) == {"well"}, outcomes
