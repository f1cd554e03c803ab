"""README, ``status`` and ``audit`` count the known bugs of a release by the same code; ``status`` is compared in
``test_cli.py``."""

from __future__ import annotations

import json
import re

import pytest

from lightning_patches import cli
from lightning_patches.cli import _figures
from tests.support.variants import ROOT

ROWS = re.findall(
    r"^\| (2\.\S+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE
)


def test_the_readme_has_some() -> None:
    assert len(ROWS) == 6


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_readme_says_what_audit_says(row: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    version, *shown = row
    known = _figures.of_release("lightning", version)
    assert [known.known, known.default, known.all, known.unmended] == list(map(int, shown))
    cli.main(["audit", "--json", "--fail-on", "never", f"lightning=={version}"])
    (audited,) = json.loads(capsys.readouterr().out)["audited"]
    assert audited["figures"] == known._asdict()
    assert f"{known.known} known bugs" in audited["headline"]


def test_each_bug_is_mended_by_default_or_by_all_or_not_at_all() -> None:
    for version in ("2.0.0", "2.2.5", "2.6.2", "2.6.6"):
        for distribution in ("lightning", "pytorch-lightning", "lightning-fabric"):
            known = _figures.of_release(distribution, version)
            assert known.known == known.default + known.opt_in + known.unmended == known.all + known.unmended


@pytest.mark.parametrize("version", ["2.9.0", "not a version"])
def test_nothing_is_said_of_a_release_that_is_not_known(version: str) -> None:
    assert _figures.of_release("lightning", version) == (0, 0, 0, 0)


def test_of_a_compromised_release_nothing_else_is_counted() -> None:
    assert _figures.of_release("lightning", "2.6.2") == (1, 0, 0, 1)
