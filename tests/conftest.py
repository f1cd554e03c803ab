"""Puts the repository on ``sys.path``, so that tests import ``tests.support`` and the package of this checkout."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

# Tests look at patches of this process only when they activate them themselves.
os.environ.setdefault("_LIGHTNING_PATCHES_IMPORT_ONLY", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def pytest_collection_modifyitems(items: list) -> None:
    """The tests of one patch share the runs of their arms: they stay on one worker.

    Those whose proof holds are skipped, but for a sample.
    """
    if all(item.path.parent.name == "unit" for item in items):
        return  # also in Pythons that lack what the others need
    from tests.equivalence import matrix, tested

    known = {} if tested.RECORDING in os.environ else tested.load()
    for item in items:
        if not tested.may_be_skipped(item.path):
            continue
        if item.path.parent == matrix.TESTS:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
        if tested.holds(item.nodeid, known) and not matrix.sampled(item.nodeid):
            item.add_marker(pytest.mark.skip("its proof holds: nothing that it depends on has changed since it passed"))


def recorded() -> Any:
    """What notes the tests that pass, in a run that is to be recorded; a worker's reports come to the process that has
    started it."""
    if "LIGHTNING_PATCHES_TEST_RECORD" not in os.environ or "PYTEST_XDIST_WORKER" in os.environ:
        return None
    from tests.equivalence import tested

    return tested.THIS_RUN


def pytest_sessionstart() -> None:
    if recorded():
        recorded().begin()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if recorded():
        recorded().take(report.nodeid, report.passed, report.duration)


def pytest_sessionfinish() -> None:
    if recorded():
        recorded().end()
