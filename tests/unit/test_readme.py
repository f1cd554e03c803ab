"""What the README promises a newcomer: its example is followed, its names exist."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lightning_patches import patches as catalogue
from lightning_patches.cli import _records
from tests.support.arms import ROOT

import _diffs  # isort: skip  (tests.support.arms has put scripts/ on the path)
import _releases  # isort: skip

README = (ROOT / "README.md").read_text()
PATCHES = ROOT / "upstream" / "PATCHES.md"
UPSTREAM = (ROOT / "upstream" / "README.md").read_text()


def _section(title: str, page: str = README) -> str:
    return re.split(rf"\n## (?:<.*>)?{re.escape(title)}(?: \(.*|: .*)?\n", page)[1].split("\n## ")[0]


def test_it_is_of_a_length_that_is_read() -> None:
    assert len(README.encode()) <= 16 * 1024


def test_symptoms_name_the_releases_that_have_them() -> None:
    """Number and releases of each row of the first table are those of a patch's record."""
    rows = [line.strip("| ").split(" | ") for line in _section("The errors that bring people here").splitlines()[3:]]
    rows = [row for row in rows if len(row) == 4]
    assert len(rows) > 9
    for _, when, releases, number in rows:
        digits = re.sub(r"\D", "", number)
        if "#when-ranks-wait" not in when:
            assert releases in [_records.affected(patch) for patch in catalogue.find(digits)], (releases, number)


def test_links_lead_somewhere() -> None:
    for page, place in ((README, ROOT), (UPSTREAM, ROOT / "upstream"), (PATCHES.read_text(), ROOT / "upstream")):
        titles = {
            re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", page, re.M)
        } | set(re.findall(r'^## <a id="([\w-]+)"></a>', page, re.M))
        for target in re.findall(r"\]\(([^)]+)\)", page):
            if target.startswith("#"):
                assert target[1:] in titles, target
            elif not target.startswith("https://"):
                assert page is not README, f"{target}: a package index shows the README, and does not have the file"
                assert (place / target).exists(), target
    for named in re.findall(r"`((?:upstream|tests|scripts)/[\w/.]+)`", README):
        assert (ROOT / named).exists(), named


def test_every_patch_has_a_page() -> None:
    text = PATCHES.read_text()
    for patch in catalogue.all_patches():
        page = _section(patch.name, text)
        (heading,) = re.findall(rf'^## <a id="{patch.name}"></a>{patch.name}(.*)$', text, re.M)
        assert patch.impact.error in heading and heading.endswith(f" ({_records.affected(patch)})"), heading
        for wanted in (patch.impact.summary, patch.title, patch.note, *patch.impact.symptoms, *map(str, patch.numbers)):
            assert wanted in page, (patch.name, wanted)
        assert "**How it is proven.** [tests/patches/" in page, patch.name


def test_how_to_add_a_patch_shows_what_stands_in_the_repository(tmp_path: Path) -> None:
    shown = {}
    for before, text in re.findall(
        r"(.*?)\n   ```\w+\n(.*?)   ```", _section("How to add a patch", UPSTREAM), re.DOTALL
    ):
        path = re.findall(r"`((?:tests|lightning_patches|upstream)/[\w/-]+\.(?:py|patch))`", before)[-1]
        shown[path] = re.sub(r"^   ", "", text, flags=re.MULTILINE)
    assert [path.partition("/")[0] for path in shown] == ["tests", "lightning_patches", "upstream", "tests"]
    (diff,) = (path for path in shown if path.endswith(".patch"))
    typed = tmp_path / Path(diff).name
    typed.write_text(shown[diff])
    release = _releases.unpacked("lightning", "2.5.0.post0")
    shown[diff] = _diffs.renewed(_diffs.read(typed), lambda path: (release / path).read_text())
    assert shown == {path: (ROOT / path).read_text() for path in shown}


@pytest.mark.slow
def test_a_new_file_is_all_that_the_catalogue_needs(tmp_path: Path) -> None:
    """The example is taken out of a copy of the repository and put in again, as the README's steps do."""
    for name in ("lightning_patches", "scripts", "upstream", "tests/support", "tests/scenarios"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    patch = tmp_path / "lightning_patches" / "patches" / "loops" / "fit_resets_should_stop.py"
    record = patch.read_text()
    patch.unlink()

    def python(*arguments: str) -> str:
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    data = tmp_path / "lightning_patches/engine/fingerprints.json"
    before = data.read_text()
    data.write_text(re.sub(r'\n *"pytorch.trainer.trainer:Trainer.fit": .*', "", before))
    assert data.read_text() != before
    assert "fit-resets-should-stop" not in python("-m", "lightning_patches", "list")
    patch.write_text(record)
    python("scripts/renew", "fingerprints")
    assert "fit-resets-should-stop" in python("-m", "lightning_patches", "list")
    assert data.read_text() == before


def test_files_and_items_that_it_names_exist() -> None:
    for path in set(re.findall(r"\b(?:scripts|upstream)/[\w./]+\b", README + UPSTREAM)):
        assert (ROOT / path).exists() or path == "upstream/diffs/fit", path
