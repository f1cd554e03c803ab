"""Puts the repository on ``sys.path``, so that tests import ``tests.support`` and the package of this checkout."""

import os
import sys
from pathlib import Path

import pytest

# Tests look at patches of this process only when they activate them themselves.
os.environ.setdefault("_LIGHTNING_PATCHES_IMPORT_ONLY", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def pytest_collection_modifyitems(items: list) -> None:
    """The tests of one patch share the runs of their arms: they stay on one worker.

    Those whose proof holds are skipped, but for a sample.
    """
    of_patches = [item for item in items if item.path.parent.name == "patches"]
    if not of_patches:
        return
    from tests.equivalence import matrix, tested

    known = {} if tested.RECORDING in os.environ else tested.load()
    for item in of_patches:
        item.add_marker(pytest.mark.xdist_group(item.path.stem))
        if tested.holds(item.nodeid, known) and not matrix.sampled(item.nodeid):
            item.add_marker(pytest.mark.skip("its proof holds: nothing that it depends on has changed since it passed"))


PASSED: dict = {}


def pytest_sessionstart() -> None:
    """What is recorded of a run is what was there when it began."""
    if os.environ.get("LIGHTNING_PATCHES_TEST_RECORD") and "PYTEST_XDIST_WORKER" not in os.environ:
        from tests.equivalence import matrix, tested

        for path in matrix.TESTS.glob("test_*.py"):
            tested.subject(path)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note which tests of patches pass; the reports of workers come to the process that has started them."""
    if "tests/patches/" in report.nodeid and not report.skipped and "PYTEST_XDIST_WORKER" not in os.environ:
        node = report.nodeid.removesuffix("@" + Path(report.nodeid.partition("::")[0]).stem)
        PASSED[node] = PASSED.get(node, True) and report.passed


def pytest_sessionfinish() -> None:
    if PASSED:
        from tests.equivalence import tested

        if tested.RECORDING in os.environ:
            tested.note(PASSED)
