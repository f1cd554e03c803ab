"""The README and the manual are true: the names in them exist, and their lines of code work."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lightning_patches import patches as catalogue
from tests.support.scripts import load
from tests.support.variants import ROOT, Variant, environment_of

README = (ROOT / "README.md").read_text()
MANUAL = (ROOT / "upstream" / "MANUAL.md").read_text()
UPSTREAM = (ROOT / "upstream" / "README.md").read_text()


def _titles(page: str) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page, re.M)
    plain = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
    return plain | set(re.findall(r'<a id="([\w-]+)"></a>', page))


def test_readme_has_a_bounded_length() -> None:
    assert len(README.splitlines()) <= 80


def test_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "upstream").glob("**/*.md"), *(ROOT / ".github").glob("*.md")):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if target.startswith(("https://", "mailto:")):
                continue
            file, _, title = target.partition("#")
            found = page.parent / file if file else page
            assert found.exists(), f"{page.name}: {target}"
            assert not title or title in _titles(found.read_text()), f"{page.name}: {target}"
    for named in re.findall(r"`((?:upstream|tests|scripts)/[\w/.]+)`", README):
        assert (ROOT / named).exists(), named


def test_index_links_every_patch() -> None:
    index = (ROOT / "upstream" / "PATCHES.md").read_text()
    pages = load("_patch_pages.py")
    for patch in catalogue.all_patches():
        assert f'<a id="{patch.name}"></a>[`{patch.name}`]({pages.link(patch)})' in index


def test_activate_call_survives_a_formatter_and_works(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    (call,) = re.findall(r"^       (lightning_patches\.\w+\(\))$", MANUAL, re.M)
    script = tmp_path / "train.py"
    script.write_text(
        f"import lightning_patches\nimport lightning.pytorch as pl\n\n{call}\n"
        "print(pl.__version__, {e.verdict for e in lightning_patches.report() if e.patch == 'logged-metrics-device'})\n"
    )
    for command in (
        ["check", "--isolated", "--select", "F,E,I,B,PL,RUF,UP", "--fix", "--unsafe-fixes"],
        ["format", "--isolated"],
    ):
        ruff = [sys.executable, "-m", "ruff", *command, str(script)]
        assert subprocess.run(ruff, capture_output=True, timeout=100).returncode in (0, 1), command
    text = script.read_text()
    assert text.index("import lightning.pytorch") < text.index("import lightning_patches\n") < text.index(call), text
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment_of(Variant("lightning", "2.2.5")), capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.stdout == "2.2.5 {'applied'}\n", done


def test_import_line_survives_a_formatter(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    (line,) = re.findall(r"^       (import lightning_patches  # .*)$", MANUAL, re.M)
    script = tmp_path / "train.py"
    script.write_text(f"{line}\nimport lightning.pytorch as pl\nimport os\n\nprint(pl, os)\n")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F,I", "--fix", str(script)]
    subprocess.run(command, capture_output=True, check=True, timeout=100)
    assert script.read_text().splitlines()[:2] == [line, "import os"]
