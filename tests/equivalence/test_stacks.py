"""The result of a patch on another torch: fixed, bug not present, worse, or not testable."""

import sys

import pytest

from tests.support.variants import ROOT, Result

sys.path.insert(0, str(ROOT / "scripts"))
import _stacks as stacks
from _expect import bug

BUG = "the reported error"
COMPILED = bug("step", stock=BUG, like="eager", patch="compiled-log")
"""A bug that upstream never fixed: the recommended usage is right."""
APPLIED = ("applied", "in place")


def ended(value):
    return Result(0, "", [{"logged": value}])


def failed(error):
    return Result(1, f"Traceback\n{error}", [{"error": error}])


def died(error):
    """It failed before it observed anything."""
    return Result(1, f"Traceback\n{error}")


@pytest.mark.parametrize(
    ("stock", "shim", "reference", "state"),
    [
        (failed(BUG), ended(1), None, stacks.CURED),
        (ended(1), ended(1), ended(1), stacks.NOT_THERE),
        (ended(2), ended(2), ended(1), stacks.BROKEN),
        (ended(1), ended(2), ended(1), stacks.WORSE),
        (ended(1), failed("another"), ended(1), stacks.WORSE),
        (ended(1), ended(2), failed("another"), stacks.WORSE),
        (ended(2), ended(3), ended(1), stacks.WORSE),
        (ended(2), ended(1), ended(1), stacks.CURED),  # stock is silently wrong
        (failed("another"), ended(1), ended(1), stacks.CURED),
        (failed("another"), ended(2), ended(1), stacks.FAILS),
        (failed("another"), ended(1), failed("another"), stacks.FAILS),
        (failed("another"), failed("another"), None, stacks.FAILS),
        (failed(BUG), failed(BUG), ended(1), stacks.NOT_CURED),
        (failed(BUG), failed("another"), ended(1), stacks.NOT_CURED),
        (failed(BUG), failed("no kernel"), failed("no kernel"), stacks.BROKEN),  # this torch lacks what the case uses
        (failed(BUG), failed("no kernel"), failed("another"), stacks.NOT_CURED),
        (failed(BUG), died("another"), died("cannot import the fixed release"), stacks.NOT_CURED),
    ],
)
def test_state_follows_from_the_three_results(monkeypatch, stock, shim, reference, state):
    def run_case(row, variant, toggle=None, case=None, variables=()):
        result = shim if variant.shim else reference if case == "eager" else stock
        assert result is not None, "nobody has to know what is right"
        return result

    monkeypatch.setattr(stacks, "run_case", run_case)
    assert stacks.look(COMPILED, "2.6.6", "python", APPLIED).state == state
