"""The result of a patch on another torch: fixed, bug not present, worse, or not testable."""

import sys
from dataclasses import replace

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


def test_refused_patch_keeps_the_bug():
    refused = ("not-supported", "needs torch.Thing")
    assert stacks.judge(COMPILED, failed(BUG), failed(BUG), refused).state == stacks.NOT_SUPPORTED
    assert stacks.judge(COMPILED, ended(1), failed("another"), refused).state == stacks.WORSE


def test_program_that_fails_before_its_observation_shows_no_bug():
    row = bug(stock=lambda seen: seen["saved"] != 1, patch="async-checkpoint-snapshot")
    assert stacks.judge(row, failed("another"), failed("another"), APPLIED).state == stacks.FAILS


def test_case_is_not_run_when_the_stack_lacks_a_feature(monkeypatch):
    monkeypatch.setattr(stacks, "run_case", lambda *arguments: pytest.fail("it was run"))
    row = replace(COMPILED, needs=("torch:compile", "torch:optim.NoSuchOptimizer"))
    seen = stacks.look(row, "2.6.6", sys.executable, APPLIED)
    assert seen.state == stacks.NOT_SUPPORTED
    assert seen.why.startswith("needs torch.optim.NoSuchOptimizer, which the installed torch ")


def test_next_command_is_tried_only_after_a_failure(tmp_path):
    def command(name, status):
        program = f"import sys; open({name!r}, 'w'); print('{name} failed'); sys.exit({status})"
        return [sys.executable, "-c", program]

    first, second, third = (str(tmp_path / name) for name in ("first", "second", "third"))
    stacks.run_or_refuse(command(first, 1), command(second, 0), command(third, 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]
    with pytest.raises(stacks.NoStackError, match="third failed"):
        stacks.run_or_refuse(command(first, 1), command(third, 1))


def test_difference_is_described_in_one_line():
    stock, eager = ({"ended well": True, "observed": [{"metrics": {"a": ["1"], "b": [b]}}]} for b in ("2", "3"))
    assert stacks.difference(stock, eager) == "observed[0].metrics.b[0] is 2, and not 3"
    assert stacks.difference({"ended well": True}, {"ended well": True, "observed": 1}).startswith(" is {")
