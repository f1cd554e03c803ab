"""The form of the scripts in ``findings/``, and the table of ``findings/run``. No finding is run here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.variants import ROOT

FINDINGS = ROOT / "findings"
pytestmark = pytest.mark.skipif(not FINDINGS.exists(), reason="a source archive has no findings")


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*.sh")), ids=lambda path: path.stem)
def test_finding_has_the_form_that_the_readme_asks_for(path: Path) -> None:
    text = path.read_text()
    assert os.access(path, os.X_OK)
    comment = text.partition("\nset -euo pipefail\n")[0]
    assert re.findall(r"^# (Guess|Behavior|Why our users meet it): ", comment, re.M) == [
        "Guess",
        "Behavior",
        "Why our users meet it",
    ]
    assert all(line.startswith("#") for line in comment.splitlines())
    assert "$(mktemp -d)" in text and "lightning_patches" not in text.lower()
    installed = [line.split()[1:] for line in text.splitlines() if line.startswith('"${pip[@]}" ')]
    assert installed and "pip install" in text
    assert [word for words in installed for word in words if "==" not in word and word != "--no-deps"] == []


def test_run_prints_a_table_and_the_output_of_a_finding_that_fails(tmp_path: Path) -> None:
    run = Path(shutil.copy(FINDINGS / "run", tmp_path))
    for name, status in (("first", 0), ("second", 3)):
        script = tmp_path / f"{name}.sh"
        script.write_text(f"#!/bin/sh\necho output of {name}\nexit {status}\n")
        script.chmod(0o755)

    def ended(*names: str) -> tuple[int, list[str]]:
        done = subprocess.run([run, *names], cwd="/", capture_output=True, text=True, timeout=60)
        return done.returncode, [re.sub(r"\d+$", "0", " ".join(line.split())) for line in done.stdout.splitlines()]

    head = "finding result seconds"
    assert ended() == (1, [head, "first pass 0", "second fail 0", "output of second"])
    assert ended("first") == ended("first.sh") == (0, [head, "first pass 0"])
