from __future__ import annotations

from typing import Any

import pytest

from tests.support.programs import Program

PROGRAM = Program("ddp-static-graph-manual", "2.5.6")

pytestmark = pytest.mark.distributed

FITS = ("first fit", "second fit")


def in_step(observations: list[dict[str, Any]], fit: str) -> bool:
    first, second = (rank[fit] for rank in observations)
    return bool(first == second)


@pytest.mark.parametrize("version", ["1.9.5", "2.5.6"])
def test_run_with_two_backwards_in_a_step_ends_as_on_stock_and_averages(version):
    stock, shim = PROGRAM.both("two", version)
    assert stock.ok and shim.ok, (stock, shim)
    assert not in_step(stock.observations, FITS[0]) and all(in_step(shim.observations, fit) for fit in FITS)
    first, second = (rank["first fit"]["gradients"][0] for rank in stock.observations)  # weights are still equal
    averaged = shim.observations[0]["first fit"]["gradients"][0]
    assert flat(averaged) == pytest.approx([(a + b) / 2 for a, b in zip(flat(first), flat(second))])


def flat(values: Any) -> list[float]:
    return [n for value in values for n in flat(value)] if isinstance(values, list) else [float.fromhex(values)]
