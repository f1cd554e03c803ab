"""What ``scripts/test`` runs, and in which order the rest gets its turn. The rule stands in ``tests/README.md``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
FIRST_OF_EACH = (
    "activation/",
    "broken_ranks/",
    "compiled/",
    "conformance/test_conformance.py",
    "distributed/",
    "equivalence/test_programs_of_1x.py",
    "differential/",
    "patches/",
    "pythons/",
    "simulated_cuda/",
)
"""Below ``tests``: where the first case of each test is chosen, for each patch and for each way in (``world``)."""
REHEARSAL = "simulated_cuda/test_rehearsal.py"
"""What `scripts/rehearse` does as well, with another Python."""
CELLS = "equivalence/test_equivalence.py"
"""Where each patch's newest affected release is chosen, in its first case."""


def soon(items: Sequence[Any]) -> list[bool]:
    """Of each test that pytest has collected: whether it is one of those that tell most in little time."""
    seen: set[tuple[str, ...]] = set()
    chosen = []
    for item in items:
        path = item.path.relative_to(TESTS).as_posix() if TESTS in item.path.parents else ""
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if path == CELLS and "cell" in parameters:
            wanted, subject = _is_newest_affected(item, parameters["cell"]), parameters["cell"].proof.patch
        elif path.startswith(FIRST_OF_EACH) and path != REHEARSAL:
            wanted, subject = True, str(parameters.get("patch", parameters.get("world", "")))
        else:
            chosen.append(path != REHEARSAL)
            continue
        key = (path, item.originalname, subject)
        chosen.append(wanted and key not in seen)
        if wanted:
            seen.add(key)
    return chosen


def _is_newest_affected(item: Any, cell: Any) -> bool:
    from tests.equivalence import matrix

    return item.originalname == "test_the_arms_agree" and cell == matrix.newest_affected(cell.proof)


def rotated(items: Sequence[Any], number: int) -> list[Any]:
    """The same tests from another place on: in seven turns each seventh of them comes first."""
    first = len(items) * (number % 7) // 7
    return [*items[first:], *items[:first]]
