"""Programs with something of their own around Lightning's functions meet the same with the patches on: a sample."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lightning_patches import patches as catalogue
from tests.extension_points import judge, record
from tests.healthy import record as healthy
from tests.support.effects import declared

SAMPLE = {"2.2.5": ("manual", "precision"), "2.6.6": ("checkpoints", "tuner", "interrupted")}
OWN = {
    "2.2.5": (
        "own_freeze",
        "own_set_epoch",
        "merged",
        "asynchronous",
        "asked_rate",
        "own_check",
        "remote",
        "black_box",
        "proxied",
        "asked_early",
    ),
    "2.6.6": (
        "own_freeze",
        "own_set_epoch",
        "merged",
        "progress",
        "own_average",
        "registries",
        "entry_points",
        "traced",
        "proxied",
        "asked_early",
    ),
}
"""Programs with classes of their own that a patch once did harm to."""
HARMFUL = ("calls_a_hook_twice", "loses_a_checkpoint", "other_weights_in_the_checkpoint")


@pytest.fixture(scope="module", params=sorted(SAMPLE))
def tries(request: pytest.FixtureRequest) -> Iterator[judge.Judge]:
    with judge.Arms(request.param) as arms:
        yield judge.Judge(arms)


@pytest.fixture(scope="module")
def arms() -> Iterator[judge.Arms]:
    with judge.Arms("2.6.6") as found:
        yield found


def test_a_patch_calls_no_code_of_a_program_that_stock_does_not_call(tries: judge.Judge) -> None:
    """Every method of every part overridden: the same calls, with the same arguments, in the same order."""
    findings = [tries({"situation": name, "kind": "documented"}) for name in SAMPLE[tries.arms.version]]
    assert [finding for finding in findings if finding.verdict == "finding"] == []


def test_circumstances_and_wrappers_are_met_as_on_stock(tries: judge.Judge) -> None:
    specs = [
        {"situation": "resumed", "kind": "wrapper", "of": "torch:load", "how": "mock"},
        {"situation": "manual", "kind": "wrapper", "of": "torch:save", "how": "checker"},
        {"situation": "resumed", "kind": "full", "bytes": 3000},
        {"situation": "fabric", "kind": "repeated", "times": 3},
    ]
    findings = [tries(spec) for spec in specs]
    assert [finding for finding in findings if finding.verdict == "finding"] == []


@pytest.mark.parametrize("version", sorted(OWN))
def test_programs_with_classes_of_their_own_stay_as_they_are(version: str) -> None:
    with judge.Arms(version) as arms:
        tries = judge.Judge(arms)
        findings = [tries({"situation": name, "kind": "plain"}) for name in OWN[version]]
    assert [finding.spec["situation"] for finding in findings if finding.verdict == "finding"] == []


@pytest.mark.parametrize("harm", HARMFUL)
def test_a_harmful_patch_is_caught(harm: str, arms: judge.Arms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "default_patches", lambda version: ["fit-resets-should-stop"])
    monkeypatch.setattr(arms, "stand_in", harm)
    assert judge.Judge(arms)({"situation": "interrupted", "kind": "documented"}).verdict == "finding"


@pytest.mark.parametrize(
    ("situation", "patches"),
    [
        ("black_box", "checkpoint-kept-on-resume,checkpoint-overwritten,remote-checkpoint-kept-on-resume"),
        ("checkpoints", "checkpoint-exists-on-rank-zero,plateau-waits-for-validation"),
    ],
)
def test_a_property_of_ones_own_is_read_as_often_as_on_stock(situation: str, patches: str) -> None:
    """``ckpt_path`` and ``strategy`` of the Trainer."""
    spec = {"situation": situation, "kind": "properties"}
    with judge.Arms("2.0.9") as arms:
        stock, shim = arms.extended(spec, False)[0], arms.extended(spec, True, patches)[0]
    assert not judge.change(stock, shim) and stock.lines


def test_what_was_looked_into_before_hides_no_harm(arms: judge.Arms, monkeypatch: pytest.MonkeyPatch) -> None:
    tries, spec = judge.Judge(arms), {"situation": "finders", "kind": "raises", "part": "Found", "method": "backward"}
    first = tries(spec)
    assert (first.verdict, first.patches, first.because) == ("explained", ["tuner-cleanup-on-error"], ["declared"])
    runs = arms.runs
    assert tries(spec) == first
    assert arms.runs - runs == 2  # stock, and with the patches
    monkeypatch.setattr(arms, "stand_in", "calls_a_hook_twice")
    assert tries(spec).verdict == "finding"


def test_the_record_counts_what_differs_alike_and_names_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "DATA", tmp_path / "record.json")
    known = record.Record()
    assert known.begin("2.2.5") == set()
    spec = {"situation": "tuner", "kind": "plain"}
    for kind in ("plain", "args", "args"):
        why = {"patches": ["a"], "because": ["declared"], "results": ["a"]}
        known.take(judge.Finding("2.2.5", {**spec, "kind": kind}, "explained", **why))
    known.take(judge.Finding("2.2.5", spec, "same"))
    known.take(judge.Finding("2.2.5", spec, "finding", ["b"], [""]))
    record.write(known)

    read = record.load()
    assert read == known
    assert [(alike.finding.spec, alike.kinds) for alike in read.alike.values()] == [(spec, {"plain": 1, "args": 2})]
    assert read.tally("2.2.5") == {"same": 1, "explained": 3, "finding": 1}
    assert read.results() == {"a"}
    page = record.page(read)
    assert "| 2.2.5 | 5 | 1 | 3 | 0 | 0 | 1 |" in page and "| b | **nothing excuses it** | 1 |" in page

    assert read.begin("2.2.5", again=True) == {judge.name_of(spec)}  # only what nothing excused makes way
    assert read.tally("2.2.5") == {"same": 1, "explained": 3} and read.findings == []


def test_a_patch_that_was_seen_to_change_results_says_so() -> None:
    """Here, and by the random programs: what a program has looked at, but for the names that an object has."""
    seen = record.load().results()
    for trial in healthy.load().findings:
        lines = [line for line in (*trial.gone, *trial.come) if judge.RESULTS.match(line) and " saw dir = " not in line]
        if trial.verdict == "explained" and len(trial.patches) == 1 and lines:
            seen.update(trial.patches)
    assert len(seen) > 10
    assert {patch for patch in seen if not catalogue.find(patch)[0].changes_results} == set()


def test_a_patch_that_declares_an_effect_says_so() -> None:
    """But for those that only say something."""
    silent = {name for name, _ in declared() if not catalogue.find(name)[0].changes_results}
    assert silent == {"trusted-checkpoint-load", "warn-mid-epoch-resume", "warn-removed-hooks"}
