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
    assert (outcome.verdict, outcome.patches) == ("finding", {regressions.REGRESSIONS[regression][0]: ""}), outcome
    text = command.summary("2.6.6", [outcome])
    assert "| 2.6.6 | 1 | 0 | 0 | 0 | 1 |" in text and regressions.REGRESSIONS[regression][0] in text


def test_set_order_is_the_same_on_stock_and_with_patches(release: trial.Release, tmp_path: Path) -> None:
    script = tmp_path / "order.py"
    script.write_text("print({'columns': list({f'column {n}' for n in range(20)})})\n")
    assert trial.judge(release, trial.Program(str(script), "order")).verdict == "same"


def test_known_differences_name_existing_patches() -> None:
    assert [name for name in known_differences.DECLARED if not catalogue.find(name)] == []


def test_each_seed_is_the_same_program_each_time() -> None:
    drawn = [trial.drawn("2.6.6", seed) for seed in range(300)]
    assert drawn == [trial.drawn("2.6.6", seed) for seed in range(300)]
    kinds = {json.loads(each.extension).get("kind") for each in drawn}
    assert kinds == {None, *trial.KINDS}
