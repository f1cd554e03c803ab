"""Programs behave the same with the patches as on stock, and a broken patch is found and named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from lightning_patches import patches as catalogue
from tests.differential import __main__ as command
from tests.differential import known_differences, regressions, trial

SAMPLE = {"1.8.6": range(2), "2.2.5": range(3), "2.6.6": range(3, 8)}
NAMED = {
    "1.8.6": ("resumed",),
    "2.2.5": ("own_freeze", "asynchronous", "remote"),
    "2.6.6": ("checkpoints", "finetuning", "averaging", "asked_early"),
}
OVERRIDDEN, READ = (json.dumps({"kind": kind}) for kind in ("overridden", "properties"))
FINDS = {
    "calls_a_hook_twice": ("callers",),
    "changes_an_argument": ("callers", OVERRIDDEN),
    "loses_a_file": ("resumed",),
    "changes_a_weight": ("callers",),
    "reads_a_property": ("callers", READ),
}
"""Programs and extensions that find each planted regression."""
KNOWN = {"loses_a_file": ("warn-last-checkpoint-old",)}
"""Patches that these programs also show, and whose differences are known."""


@pytest.fixture(scope="module")
def release() -> Iterator[trial.Release]:
    with trial.Release("2.6.6") as found:
        yield found


@pytest.mark.parametrize("version", sorted(SAMPLE))
def test_sample_of_programs_is_unchanged(version: str, release: trial.Release) -> None:
    with nullcontext(release) if version == release.version else trial.Release(version) as found:
        chosen = [trial.drawn(version, seed) for seed in SAMPLE[version]]
        chosen += [trial.named(name) for name in NAMED[version]]
        outcomes = [trial.judge(found, each) for each in chosen]
    assert [outcome for outcome in outcomes if outcome.verdict == "finding"] == []
    assert sum(outcome.verdict == "flaky" for outcome in outcomes) < len(outcomes) / 2, outcomes


@pytest.mark.parametrize("regression", sorted(regressions.REGRESSIONS))
def test_regression_of_a_patch_is_found_and_named(regression, release, monkeypatch):
    monkeypatch.setattr(release, "regression", regression)
    outcome = trial.judge(release, trial.named(*FINDS[regression]))
    known = dict.fromkeys(KNOWN.get(regression, ()), "known difference")
    expected = {**known, regressions.REGRESSIONS[regression][0]: ""}
    assert (outcome.verdict, outcome.patches) == ("finding", expected), outcome
    text = command.summary("2.6.6", [outcome])
    assert "| 2.6.6 | 1 | 0 | 0 | 0 | 1 |" in text and regressions.REGRESSIONS[regression][0] in text


def test_nondeterministic_program_is_dropped(release, tmp_path, monkeypatch):
    script = tmp_path / "flaky.py"
    script.write_text("import os\nprint({'random': os.urandom(4).hex()})\n")
    assert trial.judge(release, trial.Program(str(script), "flaky")).verdict == "flaky"


def test_set_order_is_the_same_on_stock_and_with_patches(release: trial.Release, tmp_path: Path) -> None:
    script = tmp_path / "order.py"
    script.write_text("print({'columns': list({f'column {n}' for n in range(20)})})\n")
    assert trial.judge(release, trial.Program(str(script), "order")).verdict == "same"


def test_output_of_a_script_is_compared(release: trial.Release, tmp_path: Path) -> None:
    script = tmp_path / "prints.py"
    script.write_text("import sys\nprint('{\"patched\": %s}' % ('lightning_patches' in sys.modules))\n")
    outcome = trial.judge(release, trial.Program(str(script), "prints"))
    assert outcome.verdict == "finding" and outcome.patches == {}
    assert outcome.differs == [('print {"patched": False}', 'print {"patched": True}')]


def test_known_difference_must_start_as_declared(monkeypatch):
    stock, other = (trial.Trace({"1.rank.0": ["a", line, "c"]}) for line in ("logged 1", "logged 2"))
    for begins, reason in (("logged ", "known difference"), ("call ", "")):
        monkeypatch.setattr(known_differences, "BEGINS", {"some-patch": begins})
        assert trial.why("some-patch", stock, other, other) == reason


def test_fixed_error_is_no_regression_but_another_error_is() -> None:
    died, lives, other, meant = (
        trial.Trace({"1.rank.0": ["a", *lines]})
        for lines in (
            ["end raises TypeError: no"],
            ["b", "end returns"],
            ["end raises ValueError: no"],
            ["end raises RuntimeError: on purpose"],
        )
    )
    assert trial.why("some-patch", died, lives, lives) == "no longer dies of an error"
    restored = trial.Trace({"1.rank.0": ["restored", "end raises TypeError: no"]})
    goes_on = trial.Trace({"1.rank.0": ["step", "restored", "end returns"]})
    assert trial.why("some-patch", restored, goes_on, goes_on) == "no longer dies of an error"
    assert trial.why("some-patch", died, other, other) == trial.why("some-patch", meant, lives, lives) == ""
    # One of two errors is fixed by another patch.
    assert trial.why("some-patch", died, other, lives) == "no longer dies of an error"


def test_known_differences_name_existing_patches() -> None:
    assert [name for name in known_differences.DECLARED if not catalogue.find(name)] == []


def test_each_seed_is_the_same_program_each_time() -> None:
    drawn = [trial.drawn("2.6.6", seed) for seed in range(300)]
    assert drawn == [trial.drawn("2.6.6", seed) for seed in range(300)]
    kinds = {json.loads(each.extension).get("kind") for each in drawn}
    assert kinds == {None, *trial.KINDS}
