"""The scenarios that the simulated device stands in for elsewhere, on a GPU: two ranks share one card.

What can be shown on one card, that is: a case that needs a second one says so by its way to fail.
"""

import pytest

from tests.equivalence import boundaries
from tests.support import variants


@pytest.mark.parametrize("boundary", [pytest.param(one, id=str(one)) for one in boundaries.on_one_card()])
def test_stock_shows_the_bug_and_the_other_variants_agree(boundary, monkeypatch):
    monkeypatch.setenv(variants.DEVICE, "cuda")
    assert boundaries.problems(boundary) == []
