"""Runs a part of a benchmark in a variant, in a fresh process, and reads what it has observed."""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def scenario() -> Any:
    """Import the scenario module, inside a variant."""
    sys.path.insert(0, str(ROOT / "tests" / "scenarios"))
    import _scenario

    return _scenario


def observed(what: str, variant: Any, *arguments: str, timeout: float = 600) -> dict[str, Any]:
    """Run ``scripts/benchmark WHAT --in-variant ARGUMENTS`` in the variant and return what it observed.

    Numbers are strings, as Python printed them.
    """
    from tests.support import variants

    with tempfile.TemporaryDirectory() as out:
        variables = {**variants.environment_of(variant), "SCENARIO_OUT": out, "SCENARIO_SHIM": str(int(variant.shim))}
        command = [sys.executable, str(ROOT / "scripts" / "benchmark"), what, "--in-variant", *arguments]
        status, output = variants.execute(command, variables, timeout, cwd=out)
        if status:
            sys.exit(f"{variant} ended with status {status}:\n{output[-3000:]}")
        found: dict[str, Any] = json.loads((Path(out) / "rank0.json").read_text())
        return found


def number(value: Any) -> float:
    """A number that was observed."""
    return float.fromhex(value) if isinstance(value, str) else float(value)


def spread(values: list[float]) -> dict[str, float]:
    """Their median, the least and the greatest."""
    return {"median": statistics.median(values), "least": min(values), "greatest": max(values)}


def median(values: list[float]) -> dict[str, float]:
    """It, and where it would be in 19 of 20 runs, by the binomial distribution."""
    ordered, middle, width = sorted(values), len(values) // 2, math.ceil(math.sqrt(len(values)))
    bounds = {", from": ordered[max(middle - width, 0)], ", to": ordered[min(middle + width, len(values) - 1)]}
    return {"": statistics.median(values), **bounds}
