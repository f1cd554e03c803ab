"""Puts the repository on ``sys.path``, so that tests import ``tests.support`` and the package of this checkout."""

import os
import sys
from pathlib import Path

import pytest

# Tests look at patches of this process only when they activate them themselves.
os.environ.setdefault("_LIGHTNING_PATCHES_IMPORT_ONLY", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def pytest_collection_modifyitems(items: list) -> None:
    """The tests of one patch share the runs of their arms: they stay on one worker."""
    for item in items:
        if item.path.parent.name == "patches":
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
