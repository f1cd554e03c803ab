"""The differential trial finds what changes a healthy program, and what ships changes none of a sample."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator

import pytest

from lightning_patches import patches as catalogue
from tests.healthy import programs, record, trial
from tests.healthy.trial import Change, Trace
from tests.support.effects import Effect, declared

CHECKPOINTS = {"kind": "trainer", "checkpoint": "ModelCheckpoint", "every_n_train_steps": 2, "save_top_k": -1}
HARMFUL = [
    "draws_a_random_number",
    "warns",
    "hangs",
    "last_bit",
    "other_error",
    "calls_a_hook_twice",
    "loses_a_checkpoint",
    "other_weights_in_the_checkpoint",
]
SAMPLE = {"2.2.5": range(2, 200, 9), "2.6.6": range(8, 260, 9)}


@pytest.fixture(scope="module")
def arms() -> Iterator[trial.Arms]:
    with trial.Arms("2.6.6") as found:
        yield found


def test_a_seed_makes_the_same_legal_program_everywhere() -> None:
    for seed in range(300):
        spec = programs.spec(seed)
        assert spec == programs.spec(seed) == programs.settle(spec)
        for text in programs.scripts(spec).values():
            ast.parse(text)
    assert {programs.spec(seed)["kind"] for seed in range(20)} == set(programs.OPTIONS)


def test_every_option_and_value_turns_up() -> None:
    specs = [programs.spec(seed) for seed in range(6000)]
    for kind, options in programs.OPTIONS.items():
        for name, values in options.items():
            seen = [spec[name] for spec in specs if spec["kind"] == kind and name in spec]
            assert [value for value in values[1:] if value not in seen] == [], name


def test_a_change_is_told_as_lines_that_went_and_came_or_as_pairs() -> None:
    old, new, moved = (Trace({"a.0": list(lines)}) for lines in ("xxy", "xyz", "yxx"))
    assert trial.change(old, old) == Change([], [])
    assert trial.change(old, new) == Change(["a.0: x"], ["a.0: z"])
    assert trial.change(old, moved) == Change(["a.0: x THEN a.0: y"], ["a.0: y THEN a.0: x"])
    assert trial.behaves_as(Trace({"a.0": list("xyzq")}), new, trial.change(old, new))
    assert not trial.behaves_as(old, new, trial.change(old, new))
    assert not trial.behaves_as(old, moved, trial.change(old, moved))


def test_a_warning_may_come_again_more_often() -> None:
    silent, once, twice = (Trace({"a.0": ["x", *["warning w"] * times]}) for times in range(3))
    assert trial.behaves_as(twice, once, trial.change(silent, once))
    assert not trial.behaves_as(silent, once, trial.change(silent, once))
    said = [Trace({"a.0": ["saw w"] * times}) for times in range(3)]
    assert not trial.behaves_as(said[2], said[1], trial.change(said[0], said[1]))


def test_what_no_longer_dies_of_an_error_has_done_the_same_until_then() -> None:
    dies = Trace({"train.0": ["x", "end raises TypeError: no", "file a"]})
    for lines, longer in (
        (["x", "y", "end returns"], True),
        (["z", "y", "end returns"], False),
        (["x", "end raises TypeError: yes"], False),
    ):
        assert trial.lives_longer(dies, Trace({"train.0": lines, "evaluate.0": ["loads"]})) is longer
    silent = Trace({"train.0": ["end raises TypeError: no"]})
    assert trial.lives_longer(silent, Trace({"train.0": ["end returns"], "train.1": ["end returns"]}))
    on_purpose = Trace({"train.0": ["end raises RuntimeError: on purpose"]})
    assert not trial.lives_longer(on_purpose, Trace({"train.0": ["x"]}))
    restored = "message INFO Restored all states from the checkpoint at run/.lr_find_<uuid>.ckpt"
    finder = Trace({"train.0": ["x", restored, restored, "end raises TypeError: no"]})
    assert trial.lives_longer(finder, Trace({"train.0": ["x", "y", restored, "end returns"]}))
    assert not trial.lives_longer(
        Trace({"train.0": ["x", restored, "y", "end raises TypeError: no"]}), Trace({"train.0": ["x", "y", "z"]})
    )
    restoring, loads = restored.replace("Restored all", "Restoring"), "hook Module.on_load_checkpoint() step 0"
    for told, longer in (([restoring, loads, restored], True), ([restoring, loads], False), ([loads], False)):
        fails = Trace({"train.0": ["x", *told, "end raises TypeError: no"]})
        assert trial.lives_longer(fails, Trace({"train.0": ["x", "y", "end returns"]})) is longer


@pytest.mark.parametrize("harm", HARMFUL)
def test_a_harmful_patch_is_caught(harm: str, arms: trial.Arms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "default_patches", lambda version: ["fit-resets-should-stop", "compiled-log"])
    monkeypatch.setattr(arms, "stand_in", harm)
    if harm == "hangs":  # soon, but not before one would be seen that is slow, as all are on a busy machine
        arms.run({"kind": "trainer"}, arms.version, shim=False)
        began = time.monotonic()
        arms.run({"kind": "trainer"}, arms.version, shim=False)
        monkeypatch.setattr(arms, "limit", min(trial.LIMIT, 5 + 10 * (time.monotonic() - began)))
    found = trial.Judge(arms, shrinks=0)(0, CHECKPOINTS if "checkpoint" in harm else {"kind": "trainer"})
    assert (found.verdict, found.patches, found.because) == ("defect", [trial.STAND_IN], [""]), found
    assert found.gone or found.come


def test_a_defect_is_made_as_small_as_it_can_be(arms: trial.Arms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "default_patches", lambda version: [])
    monkeypatch.setattr(arms, "stand_in", "loses_a_checkpoint")
    found = trial.Judge(arms)(0, {**CHECKPOINTS, "batch_norm": True, "clip": ("norm", 0.1), "log_also": "int"})
    kept = {"kind", "checkpoint", "every_n_train_steps"}
    assert found.verdict == "defect" and kept <= set(found.spec) <= {*kept, "save_top_k"}, found.spec


def test_an_innocent_patch_is_not(arms: trial.Arms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms, "stand_in", "innocent")
    assert trial.Judge(arms)(0, CHECKPOINTS).verdict == "same"


def test_a_declared_effect_excuses_these_lines_only(arms: trial.Arms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "default_patches", lambda version: [])
    monkeypatch.setattr(arms, "stand_in", "warns")
    remark, other = "UserWarning a remark$", "UserWarning another$"
    for lines, begins, verdict in ((remark, "", "explained"), (other, "", "defect"), ("", other, "defect")):
        effect = Effect("it warns", (lines,), begins, only="come")
        monkeypatch.setattr(trial, "declared", lambda effect=effect: [(trial.STAND_IN, effect)])
        assert trial.Judge(arms)(0, {"kind": "trainer"}).verdict == verdict


@pytest.mark.parametrize(("only", "verdict"), [("", "explained"), ("gone", "explained"), ("come", "defect")])
def test_an_effect_that_adds_excuses_no_loss(
    arms: trial.Arms, monkeypatch: pytest.MonkeyPatch, only: str, verdict: str
) -> None:
    monkeypatch.setattr(trial, "default_patches", lambda version: [])
    monkeypatch.setattr(arms, "stand_in", "loses_a_checkpoint")
    effect = Effect("another checkpoint", only=only)
    monkeypatch.setattr(trial, "declared", lambda: [(trial.STAND_IN, effect)])
    assert trial.Judge(arms)(0, CHECKPOINTS).verdict == verdict


@pytest.mark.timeout(1800)  # some 60 programs: a minute or two, but on a busy machine
@pytest.mark.parametrize("version", SAMPLE)
def test_a_sample_of_programs_does_the_same(version: str) -> None:
    with trial.Arms(version, limit=200) as found:  # none of these hangs: on a busy machine one may be slow
        judge = trial.Judge(found)
        findings = [judge(seed) for seed in SAMPLE[version]]
    assert [f for f in findings if f.verdict == "defect"] == []
    assert sum(f.verdict == "same" for f in findings) > len(findings) / 2


def test_seeds_are_written_short() -> None:
    for seeds in ([], [4], [0, 9, 18, 20], [1, 2, 3, 7, 9, 11]):
        assert record.expanded(record.contracted(seeds)) == seeds


def test_declared_effects_are_of_patches() -> None:
    found = declared()
    assert found
    for patch, effect in found:
        assert catalogue.find(patch), patch
        assert effect.says and effect.lines and all(re.compile(line) for line in (*effect.lines, effect.begins))
