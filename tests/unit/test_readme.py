"""What the README promises a newcomer: its example is followed, its names exist."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lightning_patches.fingerprints import DATA_FILE
from tests.support.arms import ROOT

README = (ROOT / "README.md").read_text()


def _section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_how_to_add_a_patch_shows_what_stands_in_the_repository() -> None:
    shown = {}
    for before, text in re.findall(r"(.*?)\n   ```\w+\n(.*?)   ```", _section("How to add a patch"), re.DOTALL):
        path = re.findall(r"`((?:tests|lightning_patches|upstream)/[\w/-]+\.(?:py|patch))`", before)[-1]
        shown[path] = re.sub(r"^   ", "", text, flags=re.MULTILINE)
    assert [path.partition("/")[0] for path in shown] == ["tests", "lightning_patches", "upstream", "tests"]
    assert shown == {path: (ROOT / path).read_text() for path in shown}


def test_a_new_file_is_all_that_the_catalogue_needs(tmp_path: Path) -> None:
    """The example is taken out of a copy of the repository and put in again, as the README's steps do."""
    for name in ("lightning_patches", "scripts", "upstream", "tests/support", "tests/scenarios"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    patch = tmp_path / "lightning_patches" / "patches" / "trainer.py"
    record = patch.read_text()
    patch.unlink()

    def python(*arguments: str) -> str:
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    python("scripts/refresh_fingerprints")
    assert "fit-resets-should-stop" not in python("-m", "lightning_patches", "list")
    patch.write_text(record)
    python("scripts/refresh_fingerprints")
    assert "fit-resets-should-stop" in python("-m", "lightning_patches", "list")
    assert (tmp_path / "lightning_patches/fingerprints.json").read_text() == Path(DATA_FILE).read_text()


@pytest.mark.parametrize("script", ["readme_table", "known_bugs"])
def test_tables_are_up_to_date(script: str) -> None:
    check = subprocess.run([sys.executable, f"scripts/{script}", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr


def test_files_and_items_that_it_names_exist() -> None:
    for path in set(re.findall(r"\b(?:scripts|upstream)/[\w.]+", README)):
        assert (ROOT / path).exists() or path == "upstream/fit", path
