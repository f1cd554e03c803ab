"""PATCHES.md and ``audit`` show the same counts of known bugs. ``test_cli.py`` compares ``status``."""

from __future__ import annotations

import json
import re

import pytest

from lightning_patches import cli
from lightning_patches.known import figures
from tests.support.variants import ROOT

PAGE = (ROOT / "upstream" / "PATCHES.md").read_text()
ROWS = re.findall(r"^\| ([12]\.\S+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)


def test_table_has_six_releases() -> None:
    assert len(ROWS) == 6


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_table_shows_the_counts_of_audit(row: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    version, *shown = row
    known = figures.of_release("lightning", version)
    assert [known.known, known.default, known.opt_in, known.unfixed] == list(map(int, shown))
    cli.main(["audit", "--json", "--fail-on", "never", f"lightning=={version}"])
    (audited,) = json.loads(capsys.readouterr().out)["audited"]
    assert audited["figures"] == known.as_dict()
    assert f"{known.known} known bugs" in audited["headline"]


def test_each_bug_is_counted_once() -> None:
    for version in ("2.0.0", "2.2.5", "2.6.2", "2.6.6"):
        for distribution in ("lightning", "pytorch-lightning", "lightning-fabric"):
            known = figures.of_release(distribution, version)
            assert known.known == known.default + known.opt_in + known.unfixed == known.all + known.unfixed
