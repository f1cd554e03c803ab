"""Every upstream fix and every tried report has a verdict that agrees with the catalogue (``scripts/renew``)."""

from __future__ import annotations

import json
from types import ModuleType

import pytest

from lightning_patches import cli
from lightning_patches import patches as catalogue
from lightning_patches.engine.fingerprints import known_releases
from lightning_patches.known import coverage
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


LINES = [
    [cell.strip() for cell in line.split("|")]
    for line in (ROOT / "upstream" / "reports.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def test_each_report_has_a_true_verdict() -> None:
    assert len(LINES) > 15
    numbers = [int(number) for number, *_ in LINES]
    assert numbers == sorted(set(numbers), reverse=True)
    for number, release, verdict, showed in LINES:
        kind, _, names = verdict.partition(": ")
        assert kind in ("fixed", "warned", "open", "left out", "not ours", "not reproduced"), verdict
        assert release in known_releases() and showed, number
        for name in names.split(", ") if kind in ("fixed", "warned") else ():
            (patch,) = catalogue.find(name)
            assert int(number) in patch.numbers and patch.warns is (kind == "warned"), (number, name)
