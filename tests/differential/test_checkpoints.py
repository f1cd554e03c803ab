"""With the default patches, a run writes the same checkpoints as on stock, and each can resume from the other's."""

from __future__ import annotations

import pytest

from tests.differential import trial


def lines(trace: trial.Trace) -> list[str]:
    """Return the parts of all files and what the program reads. Messages may differ."""
    return [line for line in trace.all_lines() if line.partition(": ")[2].startswith(("file ", "saw ", "0"))]


@pytest.mark.parametrize("version", ["2.6.6", "2.2.5", "1.9.5"])
def test_checkpoints_and_runs_resumed_from_them_are_those_of_stock(version: str) -> None:
    program = trial.named("every_callback")
    with trial.Release(version) as release:
        stock = lines(release.run(program, False))
        assert {"1.status: 0", "2.status: 0"} < set(stock) and len(stock) > 2000
        for first, then in ((True, True), (False, True), (True, False)):
            found = lines(release.run(program, first, then=then))
            assert [pair for pair in zip(stock, found) if pair[0] != pair[1]] == [] and len(found) == len(stock)
