"""The scenarios that the simulated device stands in for elsewhere, on a GPU: two ranks share one card.

What can be shown on one card, that is: a case that needs a second one says so by its way to fail.
"""

import pytest

from tests.equivalence import matrix
from tests.support import arms

RUNNER = matrix.Runner()


@pytest.mark.parametrize(
    "cell", [pytest.param(cell, id=f"{cell.proof}-{cell.version}") for cell in matrix.on_one_card()]
)
def test_stock_shows_the_bug_and_the_other_arms_agree(cell, monkeypatch):
    monkeypatch.setenv(arms.DEVICE, "cuda")
    outcome = matrix.evaluate(cell, RUNNER)
    assert outcome.agrees, f"{cell}: {outcome.arms}\n{outcome.details}"
