"""What ``scripts/prove stacks`` makes of the runs of a case: cured, not there, worse, or nothing that can be shown."""

import argparse

import pytest

from tests.equivalence import evidence, stacks
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
    stale, holds = (evidence.Seen("a", "cured", ("torch 2.2.2", "2.2.5"), stale=stale) for stale in (True, False))
    assert stacks.extent(stacks.Held({"planned": 3}, [stale, holds])) == "2 of 3, 1 stale"
    assert stacks.extent(stacks.Held({"planned": 2}, [holds, holds])) == "2"


@pytest.mark.parametrize(("states", "worse"), [(["worse", "worse"], True), (["worse", "cured"], False)])
def test_what_continuous_integration_looks_at(monkeypatch, capsys, states, worse):
    """Cases from the whole length of the list; one that is worse is run again before it is said to be."""
    script = load("_prove_stacks.py")
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


def test_resume_makes_no_environment_where_nothing_is_left_to_run(monkeypatch, tmp_path, capsys):
    """A stack's torch is gigabytes; the second run has no case to run. What changed is run again, and only that."""
    script = load("_prove_stacks.py")
    cases = [Proof("compiled-log", ends_with(BUG), case=case) for case in "ab"]
    subjects = {"compiled-log:a": "1", "compiled-log:b": "1"}
    made, looked_at = [], []

    def look(proof, release, python, verdict):
        looked_at.append(str(proof))
        return stacks.Seen("bug", "right", stacks.CURED)

    def make(environment):
        made.append(environment.torch)
        script.directory_of(environment).mkdir(parents=True, exist_ok=True)
        return "python"

    monkeypatch.setattr(stacks, "proofs_for", lambda release: cases)
    monkeypatch.setattr(stacks, "verdicts", lambda release, python: {"compiled-log": APPLIED})
    monkeypatch.setattr(stacks, "look", look)
    monkeypatch.setattr(stacks, "RECORD", tmp_path / "stacks.txt")
    monkeypatch.setattr(stacks.matrix, "proofs", lambda: cases)
    monkeypatch.setattr(stacks.matrix, "digest", lambda proof, patches, diffs: subjects[str(proof)])
    monkeypatch.setattr(script, "circumstances", lambda release, python: {"python": "3.10"})
    monkeypatch.setattr(script, "made", make)
    monkeypatch.setattr(script, "directory_of", lambda environment: tmp_path / environment.torch)
    parser = argparse.ArgumentParser()
    script.add_arguments(parser)
    command = ["--torch", "2.2.2", "--releases", "2.2.5", "--resume"]
    assert script.run(parser.parse_args(command)) == 0
    assert (made, sorted(looked_at)) == (["2.2.2"], ["compiled-log:a", "compiled-log:b"])
    assert script.run(parser.parse_args(command)) == 0
    assert (made, len(looked_at)) == (["2.2.2"], 2) and not (tmp_path / "2.2.2").exists()
    subjects["compiled-log:b"] = "2"
    assert script.run(parser.parse_args(command)) == 0
    assert (made, looked_at[2:]) == (["2.2.2", "2.2.2"], ["compiled-log:b"])
    held = stacks.load()["2.2.5 / torch 2.2.2"]
    assert [(one.case, one.stale) for one in held.cases] == [("compiled-log:a", False), ("compiled-log:b", False)]
    assert held.facts == {"planned": 2, "python": "3.10"}
    assert "0 of 2 cases to run" in capsys.readouterr().out
