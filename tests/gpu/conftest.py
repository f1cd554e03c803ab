"""These tests need a real GPU; one card is enough: `python -m pytest -m gpu`.

On a machine without a network bring the releases along: the directory that ``LIGHTNING_PATCHES_TEST_CACHE`` names
(default ``~/.cache/lightning-patches-tests``) is all that is fetched.
"""

import pytest
import torch


def pytest_collection_modifyitems(items: list) -> None:
    why = None if torch.cuda.is_available() else f"no GPU for torch {torch.__version__}"
    for item in items:
        if item.path.parent.name == "gpu":
            item.add_marker(pytest.mark.gpu)
            if why:
                item.add_marker(pytest.mark.skip(reason=why))
