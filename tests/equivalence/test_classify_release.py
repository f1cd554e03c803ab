"""``scripts/classify_release`` on an unknown release: 2.6.4, with all facts about it and later releases removed."""

import json
import subprocess
import sys

import pytest

from lightning_patches import patches as catalogue
from lightning_patches.engine import gate
from tests.support.variants import ROOT

import _releases  # isort: skip

NEW, NEWEST_KNOWN = "2.6.4", "2.6.1"


def classify(source, *options, timeout=550):
    command = [sys.executable, str(ROOT / "scripts" / "classify_release"), str(source), "--hide", NEW, "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=timeout)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == any(one["kind"] == "unclear" for one in found.values())
    return {name: one["kind"] for name, one in found.items()}, found


@pytest.mark.timeout(600)
def test_classification_finds_the_records_again():
    kinds, found = classify(_releases.wheel("lightning", NEW), "--no-trial")
    needed = [p for p in catalogue.all_patches() if NEWEST_KNOWN in gate.affected_releases(p) and not p.warns]
    assert set(kinds) == {patch.name for patch in needed}
    recorded = {p.name: "affected" if NEW in gate.affected_releases(p) else "fixed" for p in needed}
    assert {n: "fixed" if kind == "fixed" else "affected" for n, kind in kinds.items()} == recorded, found
    assert set(kinds.values()) == {"unchanged", "changed here", "fixed"}


def test_checkout_is_classified_by_its_code(tmp_path):
    """The edited function is unknown; the others are recognized by their code."""
    _releases.unpack(_releases.wheel("lightning", NEW), tmp_path / "unpacked")
    (tmp_path / "checkout").mkdir()
    (tmp_path / "unpacked").rename(tmp_path / "checkout" / "src")
    before, _ = classify(tmp_path / "checkout", "--run", "none")
    assert before["swa-keeps-trained-weights"] == "unchanged"
    file = tmp_path / "checkout" / "src" / "lightning" / "pytorch" / "callbacks" / "stochastic_weight_avg.py"
    text = file.read_text()
    edited = ("on_train_epoch_start", "on_train_epoch_end", "on_train_end")
    for name in edited:
        text = text.replace(f"def {name}(", f"def {name}(\n        ", 1)
    file.write_text(text)
    after, found = classify(tmp_path / "checkout", "--run", "none")
    methods = {f"pytorch.callbacks.stochastic_weight_avg:StochasticWeightAveraging.{name}" for name in edited}
    concerned = {p.name for p in catalogue.all_patches() if methods.intersection(p.locations)} & before.keys()
    assert "swa-keeps-trained-weights" in concerned
    assert after == {**before, **dict.fromkeys(concerned, "unclear")}, found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lost", [False, True])
def test_classification_tries_the_patch_on_changed_code(tmp_path, lost):
    """If the function has changed but the bug remains, the script reports if the patch still works."""
    _releases.unpack(_releases.wheel("lightning", NEW), tmp_path)
    file = tmp_path / "lightning" / "pytorch" / "loops" / "fit_loop.py"
    text = file.read_text().replace("def setup_data(self)", "def setup_data(self, new=None)")
    if lost:  # remove the effect of the function that the patch calls
        text = text.replace("self._combined_loader._load_state_dicts(self._combined_loader_states_to_load)", "pass")
    assert "new=None" in text
    file.write_text(text)
    _, found = classify(tmp_path, "--only", "stateful-loader-restored")
    (one,) = found.values()
    assert one["kind"] == "changed here", found
    assert ("the unchanged patch fixes it" in one["why"]) is not lost, found
    assert ("does not fix" in one["why"]) is lost and "its diff applies" in one["why"], found


def test_directory_without_lightning_is_refused(tmp_path):
    command = [sys.executable, str(ROOT / "scripts" / "classify_release"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "no Lightning in" in done.stderr
