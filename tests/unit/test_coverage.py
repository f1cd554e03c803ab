"""Every upstream fix has a verdict, and the verdicts agree with the catalogue (``scripts/renew``)."""

from __future__ import annotations

import json
import subprocess
from types import ModuleType

import pytest

from lightning_patches import cli
from lightning_patches import patches as catalogue
from lightning_patches.known import coverage
from lightning_patches.patches import all_patches
from tests.support.scripts import load
from tests.support.variants import ROOT


@pytest.fixture
def script() -> ModuleType:
    return load("_coverage.py")


def without(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    left = tuple(fix for fix in coverage.fixes() if not set(numbers) & set(fix.numbers))
    assert left != coverage.fixes()
    monkeypatch.setattr(coverage, "fixes", lambda: left)


def test_every_fix_has_a_true_verdict(script: ModuleType) -> None:
    assert script.problems() == []


def test_fix_without_a_verdict_is_reported(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, 19808)
    assert script.problems() == ["2.3.0: fix #19808 has no verdict in lightning_patches/known/coverage.txt"]


def test_fixes_of_patches_are_in_their_records(script: ModuleType) -> None:
    carried = {fix.numbers[0]: fix for fix in coverage.fixes() if fix.patches}
    assert carried[21914].patches == ("checkpoint-instantiator",) and carried[21914].release == "2.6.6"
    assert carried[18750].release == "2.1.0" and carried[19023].release == "2.1.3", "one patch, two fixes"
    assert carried[21396].patches == ("swa-infinite-epochs", "swa-keeps-trained-weights")
    assert carried[21824].release == coverage.UNRELEASED
    assert set(carried[20379].patches) >= {"mid-epoch-resume", "validation-on-resume"}


def test_release_of_an_unknown_pull_request_is_reported(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = catalogue.find("worker-seed-sequence")[0]
    wrong = patch._replace(upstream=patch.upstream._replace(others=((1, "2.5.0"),)))
    fixes = coverage.fixes()
    monkeypatch.setattr(coverage, "fixes", lambda: fixes)  # the counts of the whole catalogue
    monkeypatch.setattr(catalogue, "all_patches", lambda: (wrong,))
    assert script.problems() == ["#1 is not a pull request of worker-seed-sequence"]


@pytest.mark.parametrize("line", ["2.3.0 | | 1 | perhaps | x", "2.3.0 | | 1 | open", "2.3.0 | | 1 | left out | x"])
def test_verdict_needs_a_reason(line: str) -> None:
    with pytest.raises(ValueError, match="not a line"):
        coverage.parse_line(line)


def test_changelog_numbers_are_parsed(script: ModuleType, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads the numbers under "Fixed" of releases after 1.8.0 from a clone."""
    repository = ROOT.__class__(str(tmp_path))

    def git(*arguments: str) -> None:
        name = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *name, *arguments], cwd=repository, check=True, capture_output=True)

    git("init", "-b", "master")
    old = "## [1.8.0] - 2022\n### Fixed\n- Old ([#1](https://x/pull/1))\n"
    for text, tag in (("## [2.0.1]\n### Fixed\n- A (#2)\n### Added\n- B (#3)\n", "2.0.1"), ("## [unreleased]\n", "")):
        for path in script.CHANGELOGS:
            (repository / path).parent.mkdir(parents=True, exist_ok=True)
            (repository / path).write_text(f"{text}### Fixed\n- C ([#4](https://x/issues/4))\n{old}")
        git("add", "-A")
        git("commit", "-m", "x")
        if tag:
            git("tag", tag)
    assert script.changelog_fixes(repository).splitlines()[2:] == ["2.0.1: 2 4", "unreleased: 4"]


def test_audit_counts_all_upstream_fixes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIGHTNING_PATCHES", raising=False)
    spec = ("--requirement", "pytorch-lightning==2.2.5")
    cli.main(["audit", *spec, "--json"])
    (one,) = json.loads(capsys.readouterr().out)["audited"]
    assert one["upstream"] == coverage.counts("2.2.5")
    assert one["upstream"]["patched"] > 20 and one["upstream"]["left out"] > 0
    cli.main(["audit", *spec])
    text = " ".join(capsys.readouterr().out.split())
    assert (
        f"has fixed {sum(one['upstream'].values())} bugs of 2.2.5 in later releases: {one['upstream']['patched']} have"
        in text
    )
    assert "#21361" not in text
    cli.main(["audit", *spec, "--fixes"])
    text = " ".join(capsys.readouterr().out.split())
    assert "#21361" in text and "#19627" not in text, "2.2.5 has that fix"


def test_fixes_after_a_release_are_those_that_it_lacks() -> None:
    assert {fix.release for fix in coverage.fixed_after("2.6.6")} == {coverage.UNRELEASED}
    assert not any(19627 in fix.numbers for version in ("2.1.4", "2.2.2") for fix in coverage.fixed_after(version))
    assert any(19627 in fix.numbers for fix in coverage.fixed_after("2.2.1"))
    assert coverage.fixed_after("not a version") == ()


def test_merged_fix_is_shown_as_unreleased() -> None:
    merged = {patch.name for patch in all_patches() if patch.upstream.merged}
    assert {"fused-optimizer-clipping", "worker-shutdown-error", "sigterm-exit-status", "compiled-log"} <= merged
    assert all(
        patch.fixed_in is None and patch.upstream.pull_requests for patch in all_patches() if patch.name in merged
    )
