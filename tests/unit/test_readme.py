"""What the README promises a newcomer: its example is followed, its names exist."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import arms
from tests.support.arms import ROOT, Arm

README = (ROOT / "README.md").read_text()


def _section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the repository, for the example to change."""
    for name in ("lightning_patches", "tests/scenarios", "scripts", "upstream"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_how_to_add_a_patch(checkout: Path) -> None:
    section = _section("How to add a patch")
    steps = re.findall(
        r"`((?:tests|lightning_patches)/[\w/]+\.py)`[^`]*?\n\n?   ```python\n(.*?)   ```", section, re.DOTALL
    )
    assert [Path(path).name for path, _ in steps] == ["fit_resets_should_stop.py", "trainer.py"]
    for path, code in steps:
        (checkout / path).write_text(re.sub(r"^   ", "", code, flags=re.MULTILINE))

    def scenario(shim: bool) -> arms.Result:
        arm = Arm("lightning", "2.4.0", shim)
        variables = {**arms.environment_of(arm), "SCENARIO_SHIM": str(int(shim)), "SCENARIO_OUT": str(checkout)}
        variables["PYTHONPATH"] = variables["PYTHONPATH"].replace(str(ROOT), str(checkout), 1)
        program = checkout / "tests/scenarios/fit_resets_should_stop.py"
        status, output = arms.execute([sys.executable, str(program)], variables, 120, cwd=str(checkout))
        rank = checkout / "rank0.json"
        return arms.Result(status, output, [json.loads(rank.read_text())] if rank.exists() else [])

    refresh = subprocess.run(
        [sys.executable, "scripts/refresh_fingerprints"], cwd=checkout, capture_output=True, text=True
    )
    assert refresh.returncode == 0, refresh.stderr
    listed = subprocess.run(
        [sys.executable, "-m", "lightning_patches", "list"],
        cwd=checkout,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert "fit-resets-should-stop" in listed.stdout, listed
    assert scenario(shim=False).observations == [{"steps": 0}]
    assert scenario(shim=True).observations == [{"steps": 2}]


def test_patch_table_is_up_to_date() -> None:
    check = subprocess.run(
        [sys.executable, "scripts/readme_table", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert check.returncode == 0, check.stdout + check.stderr


def test_files_and_items_that_it_names_exist() -> None:
    for path in set(re.findall(r"\b(?:scripts|upstream)/[\w.]+", README)):
        assert (ROOT / path).exists() or "fit-resets" in path or path == "upstream/fit", path
