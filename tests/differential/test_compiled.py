"""Programs that use torch.compile end as on stock, with the same weights and no more graph breaks."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, Optional

import pytest
import torch

from tests.support import variants
from tests.support.run import execute
from tests.support.variants import Variant

PROGRAMS = Path(__file__).with_name("programs") / "compiled.py"

pytestmark = [
    pytest.mark.skipif(torch.__version__ < "2.12", reason="older ones compile and interrupt other code"),
    pytest.mark.slow,
    pytest.mark.timeout(3600),  # each takes a few minutes on two cores
]


@cache
def results(version: str, backend: str, shim: bool, toggle: Optional[str] = None) -> dict[str, dict[str, Any]]:
    """Return the result of each program, by name."""
    variables = variants.environment_of(Variant("pytorch-lightning", version), toggle=toggle)
    variables.update(SCENARIO_SHIM=str(int(shim)), BACKEND=backend)
    status, output = execute([sys.executable, str(PROGRAMS)], variables, timeout=3600)
    assert status == 0, output[-3000:]
    lines = [json.loads(line) for line in output.splitlines() if line.startswith('{"program": ')]
    return {line["program"]: line for line in lines}


def difference(stock: dict[str, Any], shim: dict[str, Any]) -> str:
    """Describe how a program is worse than on stock. A program with an error on stock may run with a patch."""
    if stock["ended"] != "well":
        return "" if shim["ended"] in (stock["ended"], "well") else f"ends in {shim['ended']}, not {stock['ended']}"
    if shim["ended"] != "well":
        return f"ends in {shim['ended']}"
    more = f"{shim['breaks']} graph breaks, not {stock['breaks']}" if shim["breaks"] > stock["breaks"] else ""
    return more if shim["weights"] == stock["weights"] else "other weights"


def in_group(version: str, backend: str, *more: Any) -> Any:
    """Keep all tests that use these runs on stock on one worker, so that each runs once."""
    return pytest.param(version, backend, *more, marks=pytest.mark.xdist_group(f"{version} {backend}"))


@pytest.mark.parametrize(
    ("version", "backend", "toggle"),
    [
        in_group("2.6.6", "eager", "all"),
        in_group("2.6.6", "aot_eager", None),
        in_group("2.2.5", "eager", None),
        in_group("2.1.4", "eager", None),
        in_group("2.2.5", "aot_eager", "all"),
        in_group("2.3.3", "eager", None),
        in_group("2.5.2", "aot_eager", None),
    ],
)
def test_compiled_programs_are_no_worse_than_on_stock(version: str, backend: str, toggle: Optional[str]) -> None:
    stock, shim = results(version, backend, False), results(version, backend, True, toggle)
    assert stock["Gan.module"]["breaks"] > 0, "nothing was compiled"
    assert sum(result["ended"] == "well" for result in stock.values()) > len(stock) / 2
    differences = {name: difference(stock[name], shim[name]) for name in stock}
    assert {name: found for name, found in differences.items() if found} == {}


@pytest.mark.parametrize(("version", "backend"), [in_group("2.6.6", "eager"), in_group("2.6.6", "aot_eager")])
def test_stock_trains_a_compiled_gan_that_toggles_its_optimizers(version: str, backend: str) -> None:
    """coverage.txt states this for 21513. With one device, ``in_place`` compiles no step."""
    stock = results(version, backend, False)
    assert stock["Gan.module"]["weights"] == stock["Gan.in_place"]["weights"]
    assert stock["Gan.module"]["breaks"] > stock["Gan.in_place"]["breaks"] == 0
    assert stock["Gan.whole_step"]["ended"] == "Unsupported"
