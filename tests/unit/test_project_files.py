"""What is said outside of the code, for those who release, contribute, or use a hook, agrees with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lightning_patches
from lightning_patches import patches as catalogue
from lightning_patches.cli import _requirements
from tests.support.arms import ROOT

yaml = pytest.importorskip("yaml")


def test_the_newest_section_of_the_changelog_is_this_version() -> None:
    text = (Path(lightning_patches.__file__).parent / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\S+)", text, re.MULTILINE)
    assert versions[0] == lightning_patches.__version__
    assert versions[-1] == "0.1.0"
    assert {patch.added for patch in catalogue.all_patches()} <= set(versions)


def test_the_public_names_are_what_they_say() -> None:
    for name in lightning_patches.__all__:
        public = getattr(lightning_patches, name)
        assert callable(public) and public.__doc__, name
        assert public.__name__ == name
    assert issubclass(lightning_patches.LightningPatchesWarning, UserWarning)
    assert issubclass(lightning_patches.RankByRankTimeoutError, TimeoutError)


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt", "deps/requirements.in", "uv.lock"])
def test_the_hook_is_given_files_that_audit_reads(name: str) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert re.search(hook["files"], name)
    assert not re.search(hook["files"], "train.py")
    assert hook["entry"].split() == ["lightning-patches", "audit"]


def test_the_hook_takes_all_that_is_read(tmp_path: Path) -> None:
    """Each name that the help of ``audit`` mentions."""
    from lightning_patches.cli import audit

    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert audit.__doc__ is not None
    named = re.findall(r"\b(?:pyproject\.toml|\w+\.lock|pylock\.toml|Pipfile|environment\.yml)\b", audit.__doc__)
    assert len(named) > 5 and _requirements.NAMES
    for name in named:
        assert re.search(hook["files"], name), name


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_and_forms_can_be_read(path: Path) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert document
    for field in document.get("body", ()):
        assert field["type"] in ("textarea", "input") and field["attributes"]["label"], field
    if "body" in document:
        assert any("lightning-patches report" in field["attributes"]["label"] for field in document["body"])


def test_files_that_are_named_are_there() -> None:
    for path in (ROOT / ".github").glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
