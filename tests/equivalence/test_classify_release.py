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
    kinds, found = classify(_releases.wheel("lightning", NEW))
    needed = [p for p in catalogue.all_patches() if NEWEST_KNOWN in gate.affected_releases(p) and not p.warns]
    assert set(kinds) == {patch.name for patch in needed}
    recorded = {p.name: "affected" if NEW in gate.affected_releases(p) else "fixed" for p in needed}
    assert {n: "fixed" if kind == "fixed" else "affected" for n, kind in kinds.items()} == recorded, found
    assert set(kinds.values()) == {"unchanged", "changed here", "fixed"}
