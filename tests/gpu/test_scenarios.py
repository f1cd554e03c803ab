"""The scenarios of the simulated device on a real GPU, which two ranks share.

Only cases that one GPU can show are included.
"""

import pytest

from tests.equivalence import boundaries
from tests.support import variants


@pytest.mark.parametrize("boundary", [pytest.param(one, id=str(one)) for one in boundaries.on_one_card()])
def test_stock_shows_the_bug_and_the_other_variants_agree(boundary, monkeypatch):
    monkeypatch.setenv(variants.DEVICE, "cuda")
    assert boundaries.problems(boundary) == []
