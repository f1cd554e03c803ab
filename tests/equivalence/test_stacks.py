"""What ``scripts/stacks`` makes of the runs of a case: cured, not there, worse, or nothing that can be shown."""

import argparse

import pytest

from tests.equivalence import stacks
from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Result
from tests.support.scripts import load

BUG = "the reported error"
COMPILED = Proof("compiled-log", ends_with(BUG), case="step", recommended="eager")
"""Of a bug that upstream never fixed: what is recommended is right."""
APPLIED = ("applied", "in place")


def ended(value):
    return Result(0, "", [{"logged": value}])


def failed(error):
    return Result(1, f"Traceback\n{error}", [{"error": error}])


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
        (ended(2), ended(1), ended(1), stacks.CURED),  # stock says nothing, and is wrong
        (failed("another"), ended(1), ended(1), stacks.CURED),
        (failed("another"), ended(2), ended(1), stacks.BROKEN),
        (failed("another"), ended(1), failed("another"), stacks.BROKEN),
        (failed("another"), failed("another"), None, stacks.BROKEN),
        (failed(BUG), failed(BUG), ended(1), stacks.NOT_CURED),
        (failed(BUG), failed("another"), ended(1), stacks.NOT_CURED),
        (failed(BUG), failed("no kernel"), failed("no kernel"), stacks.BROKEN),  # this torch lacks what the case uses
        (failed(BUG), failed("no kernel"), failed("another"), stacks.NOT_CURED),
    ],
)
def test_what_is_said_of_a_case(monkeypatch, stock, shim, reference, state):
    def run_case(proof, arm, toggle=None, case=None, variables=()):
        result = shim if arm.shim else reference if case == "eager" else stock
        assert result is not None, "nobody has to know what is right"
        return result

    monkeypatch.setattr(stacks, "run_case", run_case)
    assert stacks.look(COMPILED, "2.6.6", "python", APPLIED).state == state


def test_a_refusal_that_leaves_the_bug_as_it_is():
    refused = ("not-supported", "needs torch.Thing")
    assert stacks.judge(COMPILED, failed(BUG), failed(BUG), refused).state == stacks.NOT_SUPPORTED
    assert stacks.judge(COMPILED, ended(1), failed("another"), refused).state == stacks.WORSE


def test_the_difference_is_said_in_one_line():
    stock, eager = ({"ended well": True, "observed": [{"metrics": {"a": ["1"], "b": [b]}}]} for b in ("2", "3"))
    assert stacks.difference(stock, eager) == "observed[0].metrics.b[0] is 2, and not 3"
    assert stacks.difference({"ended well": True}, {"ended well": True, "observed": 1}).startswith(" is {")


def test_how_far_a_run_went():
    stale, holds = {"stale": True}, {"stale": False}
    assert stacks.extent({"planned": 3, "cases": {"a": stale, "b": holds}}) == "2 of 3, 1 stale"
    assert stacks.extent({"planned": 2, "cases": {"a": holds, "b": holds}}) == "2"


@pytest.mark.parametrize(("states", "worse"), [(["worse", "worse"], True), (["worse", "cured"], False)])
def test_what_continuous_integration_looks_at(monkeypatch, capsys, states, worse):
    """Cases from the whole length of the list; one that is worse is run again before it is said to be."""
    script = load("stacks")
    seen = dict.fromkeys(["a", "c", "e"], None)
    left = {"a": ["cured"], "c": [*states], "e": ["not there"]}

    def look(proof, release, python, verdict):
        seen[proof.case] = verdict
        return stacks.Seen("", "", left[proof.case].pop(0))

    cases = [Proof("compiled-log", ends_with(BUG), case=case) for case in "abcdef"]
    monkeypatch.setattr(stacks, "proofs_for", lambda release: cases)
    monkeypatch.setattr(stacks, "verdicts", lambda release, python: {"compiled-log": APPLIED})
    monkeypatch.setattr(stacks, "look", look)
    options = argparse.Namespace(check=3, jobs=1)
    assert script.check("2.2.5", "python", options) == (["compiled-log:c"] if worse else [])
    assert seen == dict.fromkeys("ace", APPLIED) and left == {"a": [], "c": [], "e": []}
    assert "2.2.5 compiled-log:c: worse" in capsys.readouterr().out
