"""Files for maintainers, contributors and users of the hook agree with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lightning_patches
from lightning_patches import patches as catalogue
from lightning_patches.fork import diffs
from tests.support.variants import ROOT

yaml = pytest.importorskip("yaml")


def test_changelog_starts_with_this_version() -> None:
    text = (Path(lightning_patches.__file__).parent / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\d\S+)", text, re.MULTILINE)  # and not "Unreleased"
    assert versions[0] == lightning_patches.__version__
    assert versions[-1] == "0.1.0"
    assert len(versions) + ("## Unreleased" in text) == diffs.NUMBER  # one per version, the next one included
    unreleased = {patch.added for patch in catalogue.all_patches()} - set(versions)
    assert len(unreleased) <= ("## Unreleased" in text)  # the next version


def test_public_names_are_importable() -> None:
    for name in lightning_patches.__all__:
        public = getattr(lightning_patches, name)
        assert callable(public) and public.__doc__, name
        assert public.__name__ == name
    assert issubclass(lightning_patches.LightningPatchesWarning, UserWarning)
    assert issubclass(lightning_patches.RankByRankTimeoutError, TimeoutError)


def test_pre_commit_hook_matches_every_supported_file(tmp_path: Path) -> None:
    """Each name that the help of ``audit`` mentions."""
    from lightning_patches.cli import audit

    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert audit.__doc__ is not None
    named = re.findall(r"\b(?:pyproject\.toml|\w+\.lock|pylock\.toml|Pipfile|environment\.yml)\b", audit.__doc__)
    assert len(named) > 5
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


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_take_actions_by_commit_and_leave_no_credentials(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line
    for step in (step for job in workflow["jobs"].values() for step in job["steps"]):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_links_of_community_files_lead_to_files() -> None:
    for path in (ROOT / ".github").glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
