"""The diffs in upstream/diffs/ apply exactly to every release of their range, and agree with the records."""

import json
import os
import re
import shutil
import subprocess

import pytest

from lightning_patches import patches as catalogue
from lightning_patches.engine.distributions import MARKER
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.fork import diffs as _diffs
from tests.support import variants

import _releases  # isort: skip

SERIES = _diffs.series()
reader = _releases.reader
LAYOUTS = list(_releases.NAMESPACES.items())


def over(changed, original):
    return lambda path: changed[path] if path in changed else original(path)


def unsound(texts, directory):
    """Return undefined names by file, and files that are not valid Python."""
    for path, text in texts.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    command = [variants.sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F821,F811,F823"]
    done = subprocess.run([*command, "--output-format=json", directory], capture_output=True, text=True)
    return {(os.path.relpath(one["filename"], directory), one["message"]) for one in json.loads(done.stdout)}


@pytest.mark.parametrize("version", ["1.8.6", "1.9.5", "2.0.9", "2.1.4", "2.2.5", "2.3.3", "2.4.0", "2.5.6", "2.6.6"])
def test_patched_sources_have_no_undefined_names(version, tmp_path):
    """Covers code that no test runs in a fork: for example, a diff's ``import torch`` can hide the module's import."""
    original = reader("lightning", version)
    changed = _diffs.apply_all(_diffs.selected(version, None, SERIES), "lightning", original)
    stock = {path: original(path) for path in changed if original(path) is not None}
    assert unsound(changed, tmp_path / "fork") <= unsound(stock, tmp_path / "stock")


@pytest.mark.slow
@pytest.mark.parametrize(("distribution", "namespace"), LAYOUTS)
def test_each_diff_applies_to_each_affected_release_alone_and_in_the_series(distribution, namespace):
    for version in _releases.versions(distribution):
        original = reader(distribution, version)
        chosen = _diffs.selected(version, None, SERIES)
        changed = {}
        for diff in chosen:
            assert _diffs.state(diff, namespace, original) == ("applies", ""), (diff.path.name, version)
            changed.update(_diffs.apply(diff, namespace, over(changed, original)))
            assert _diffs.state(diff, namespace, over(changed, original)) == ("applied", ""), (diff.path.name, version)
        for path, text in changed.items():
            compile(text, path, "exec")


@pytest.mark.skipif(shutil.which("patch") is None, reason="no GNU patch on this machine")
@pytest.mark.parametrize("diff", SERIES, ids=lambda diff: diff.path.stem)
def test_gnu_patch_without_fuzz_makes_the_same_files(diff, tmp_path):
    versions = [version for version in _releases.versions() if diff.is_for(version)]
    for version in dict.fromkeys((versions[0], versions[-1])):
        original = reader("lightning", version)
        expected = _diffs.apply(diff.at(version), "lightning", original)
        whole = tmp_path / f"{version}.patch"
        whole.write_text(_diffs.for_tools(diff.at(version), original))
        root = tmp_path / version
        for path in expected:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if original(path) is not None:
                (root / path).write_text(original(path))
        command = ["patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch", "--force", "-i", str(whole)]
        done = subprocess.run(command, cwd=root / "lightning", capture_output=True, text=True)
        assert done.returncode == 0, (version, done.stdout, done.stderr)
        assert {path: (root / path).read_text() for path in expected} == expected, version


def test_diffs_fit_their_records():
    for diff in SERIES:
        assert diff.header.get("Affected"), diff.path.name
        for path, hunks in diff.changes:
            marked = [kind for hunk in hunks for kind, text in hunk.lines if MARKER + diff.name in text]
            assert "+" in marked, (diff.path.name, path)
        modules = {location.partition(":")[0].replace(".", "/") for location in _diffs.record(diff.name).locations}
        files = {f"{module}{end}" for module in modules for end in (".py", "/__init__.py")}
        assert files & {path for path, _ in diff.changes}, diff.path.name


def test_imports_are_not_added_above_a_definition_that_other_diffs_decorate():
    for diff in SERIES:
        for hunk in (hunk for path, hunks in diff.changes for hunk in hunks if hunk.section):
            assert not re.search(r"^from .*\n+@", "\n".join(hunk.after), re.MULTILINE), (diff.name, hunk.section)


def test_range_of_each_hunk_divides_the_affected_releases():
    for diff in SERIES:
        affected = [version for version in _releases.versions() if diff.is_for(version)]
        assert affected and all(diff.at(version).changes for version in affected), diff.name
        for hunk in (hunk for _, hunks in diff.changes for hunk in hunks if hunk.releases):
            count = sum(in_ranges(version, (hunk.releases,)) for version in affected)
            assert 0 < count < len(affected), (diff.name, hunk.section, hunk.releases)


def test_header_combines_record_and_file(tmp_path):
    diff = next(diff for diff in SERIES if diff.name == "fit-resets-should-stop")
    assert set(diff.typed) == {"Description", "Difference"}
    assert diff.header == {
        "Description": [f"A Trainer that was stopped early can fit again\n{diff.typed['Description'][0]}"],
        "Origin": [
            "backport, https://github.com/Lightning-AI/pytorch-lightning/pull/19177\n"
            "(https://github.com/Lightning-AI/pytorch-lightning/commit/40c682e930)"
        ],
        "Bug": ["https://github.com/Lightning-AI/pytorch-lightning/pull/19177"],
        "Forwarded": [],
        "Applied-Upstream": ["2.5.1"],
        "Affected": [">=1.8.0,<2.5.1"],
        "Difference": diff.typed["Difference"],
    }
    text = _diffs.header_text(diff.header)
    assert text.startswith("Description: A Trainer that was stopped early can fit again\n Reset should_stop ")


FILE = """\
class Loop:
    def run(self):
        self.advance()
        return 1

    def stop(self):
        self.advance()
        return 2
"""
PATCH = """\
Description: made up
---
+++ pytorch/loop.py
@@ Loop.run
+        self.reset()  # see lightning.pytorch.loop
         self.advance()
"""


def made_up(tmp_path, text=PATCH):
    path = tmp_path / "compiled-log.patch"
    path.write_text(text)
    return _diffs.read(path)


def test_context_is_searched_in_the_named_function_only(tmp_path):
    diff = made_up(tmp_path)
    changed = _diffs.apply(diff, "pytorch_lightning", {"pytorch_lightning/loop.py": FILE}.get)
    lines = changed["pytorch_lightning/loop.py"].splitlines()
    assert lines[2:5] == [
        "        # lightning-patches: compiled-log",
        "        self.reset()  # see pytorch_lightning.loop",
        "        self.advance()",
    ]
    assert lines[:2] + lines[4:] == FILE.splitlines()


def test_hunk_with_a_range_is_left_out_on_other_releases(tmp_path):
    stop = "@@ Loop.stop >=2.1.0,<2.3.0\n-        self.advance()\n"
    diff = made_up(tmp_path, PATCH + stop)
    assert [hunk.section for hunk in diff.at("2.2.5").changes[0][1]] == ["Loop.run", "Loop.stop"]
    assert diff.at("2.0.9").changes == diff.at("2.3.0").changes == made_up(tmp_path).changes


def test_comment_that_names_the_patch_is_not_added_twice(tmp_path):
    without = made_up(tmp_path)
    line = "+        self.reset()"
    typed = PATCH.replace(line, f"+        # lightning-patches: compiled-log\n{line}")
    assert made_up(tmp_path, typed).changes == without.changes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (FILE.replace("self.advance()", "self.advance( )"), "not found"),
        (FILE.replace("        return 1", "        self.advance()"), "found 2 times"),
        (FILE.replace("def run", "def go"), "not found"),
        (FILE.replace("self.advance()", "self.advance() "), "not found"),
    ],
)
def test_inexact_context_is_refused(tmp_path, text, reason):
    state, why = _diffs.state(made_up(tmp_path), "lightning", {"lightning/pytorch/loop.py": text}.get)
    assert state == "does not apply"
    assert reason in why


def test_missing_file_is_refused(tmp_path):
    state, why = _diffs.state(made_up(tmp_path), "lightning", {}.get)
    assert (state, why) == ("does not apply", "compiled-log.patch: lightning/pytorch/loop.py does not exist")


@pytest.mark.parametrize(
    "text",
    [
        PATCH.replace("@@ Loop.run", "@@ -3,1 +3,2 @@ Loop.run"),
        PATCH.replace("@@ Loop.run", "@@ Loop.run 2.1.0"),
        PATCH.replace("\n---\n", "\n"),
        PATCH.replace("Description:", "description:"),
        PATCH.replace("+++ pytorch/loop.py\n", ""),
        PATCH.replace("+        self", "         self"),
        PATCH.rpartition("@@")[0],
    ],
)
def test_malformed_diff_is_refused(tmp_path, text):
    with pytest.raises(_diffs.DiffError):
        made_up(tmp_path, text)


def test_series_has_the_order_of_the_catalogue(tmp_path):
    names = [patch.name for patch in catalogue.all_patches()][:3]
    for name in sorted(names):
        (tmp_path / f"{name}.patch").write_text(PATCH)
    assert [diff.name for diff in _diffs.series(tmp_path)] == names
    (tmp_path / "made-up.patch").write_text(PATCH)
    with pytest.raises(_diffs.DiffError, match="made-up"):
        _diffs.series(tmp_path)


def test_carried_files_are_complete_and_import_nothing_of_the_package(tmp_path):
    """They are generated from this package: each name in them must be defined or imported from elsewhere."""
    carried = [
        (path, "\n".join(hunks[0].after) + "\n")
        for diff in SERIES
        for path, hunks in diff.changes
        if hunks[0].is_new_file
    ]
    assert carried
    assert unsound(dict(carried), tmp_path) == set()
    for path, text in carried:
        assert not re.search(r"^\s*(import|from) lightning_patches", text, re.MULTILINE), path
